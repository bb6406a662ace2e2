"""Build backend: maturin, and before it the parts of the wheel that maturin does not know.

The wheel holds two shared objects: the Python module, which maturin builds, with the engine and the SQL functions in
it; and the DuckDB extension for all other clients, the same without Python. This file builds the extension, gives it
its footer and puts it beside ``engramsql/udf/__init__.py``. The footer comes last: a strip would cut it off.
``catalog/`` is copied into the package. All of it is made in the source tree and ignored by git.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from footer import append_footer
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
CRATE = "engram-duckdb"
PACKAGE = ROOT / "engramsql"


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel and returns its file name."""
    _prepare()
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel of an editable install, with the shared objects in the source tree."""
    _prepare()
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def _prepare() -> None:
    shared_object, version = _build_extension()
    append_footer(shared_object, PACKAGE / "udf" / "engramsql.duckdb_extension", version)
    shutil.rmtree(PACKAGE / "catalog", ignore_errors=True)
    shutil.copytree(ROOT / "catalog", PACKAGE / "catalog")


def _build_extension() -> tuple[Path, str]:
    """Builds the extension crate; its shared object and its version."""
    cargo = os.environ.get("CARGO", "cargo")
    # The crate itself is a plain library, for the Python module; as a cdylib alone it gets the profile's LTO too.
    command = [cargo, "rustc", "--release", "--locked", "--package", CRATE, "--lib", "--crate-type", "cdylib"]
    command += ["--message-format", "json-render-diagnostics"]
    print(f"$ {' '.join(command)}", file=sys.stderr, flush=True)
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in output.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and "cdylib" in message["target"]["kind"]:
            return Path(message["filenames"][0]), _version(cargo)
    raise RuntimeError(f"cargo built {CRATE} and named no shared object")


def _version(cargo: str) -> str:
    command = [cargo, "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    version: str = next(package["version"] for package in metadata["packages"] if package["name"] == CRATE)
    return version
