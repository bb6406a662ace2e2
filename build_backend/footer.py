"""The footer that makes a shared object a DuckDB extension.

Layout, appended to the shared object (512 bytes in all):

    32 bytes x 8   fields, NUL-padded, in this order:
                   [unused] [unused] [unused] [ABI] [extension version] [C API version] [platform] ["4"]
    256 bytes      signature; zeros for an unsigned extension

``ABI`` is ``C_STRUCT``: the extension takes the C API's function table, not DuckDB's C++ symbols. ``C API version`` is
the oldest DuckDB whose table has every slot used; it must equal ``API_VERSION`` in the extension's ``ffi/entry.rs``.
``platform`` is what ``PRAGMA platform`` prints. Append the footer last: a strip afterwards would remove it.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FIELD = 32
FIELDS = 8
SIGNATURE = 256
SIZE = FIELD * FIELDS + SIGNATURE

ABI = "C_STRUCT"
API_VERSION = "v1.5.6"
FOOTER_VERSION = "4"

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def platform_name() -> str:
    """DuckDB's name of the machine this runs on, as ``PRAGMA platform`` prints it.

    Raises:
        RuntimeError: DuckDB has no name for this machine.
    """
    machine = platform.machine().lower()
    arch = _MACHINES.get(machine)
    if arch is None:
        raise RuntimeError(f"DuckDB has no extension platform for machine {machine!r}")
    if sys.platform == "darwin":
        return f"osx_{arch}"
    if sys.platform == "win32":
        return f"windows_{arch}"
    if sys.platform.startswith("linux"):
        return f"linux_{arch}_musl" if _is_musl() else f"linux_{arch}"
    raise RuntimeError(f"DuckDB has no extension platform for {sys.platform!r}")


def _is_musl() -> bool:
    # Python built against musl says so in its host type; glibc's confstr names itself.
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        return True
    return platform.libc_ver()[0] == "" and "musl" in (sysconfig.get_config_var("SOABI") or "")


def footer(version: str, target_platform: str) -> bytes:
    """The 512 footer bytes for an extension of this version.

    Raises:
        ValueError: a field does not fit its 32 bytes.
    """
    fields = ["", "", "", ABI, version, API_VERSION, target_platform, FOOTER_VERSION]
    encoded = []
    for field in fields:
        raw = field.encode("ascii")
        if len(raw) > FIELD:
            raise ValueError(f"footer field {field!r} is longer than {FIELD} bytes")
        encoded.append(raw.ljust(FIELD, b"\0"))
    return b"".join(encoded) + bytes(SIGNATURE)


def append_footer(shared_object: Path, target: Path, version: str, target_platform: str | None = None) -> None:
    """Writes ``target``: the shared object followed by its footer.

    A new file is written and renamed into place: overwriting a file that a process has loaded would crash it.
    """
    target_platform = target_platform or platform_name()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(shared_object.read_bytes())
            file.write(footer(version, target_platform))
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o755)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
