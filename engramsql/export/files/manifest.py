"""The manifest of an export of several files: what it is, which of its files are complete, and their checksums."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from engramsql.export.files.source import Source
    from engramsql.export.files.writer import Layout

__all__ = [
    "MANIFEST",
    "Part",
    "check_files",
    "difference",
    "finished",
    "fixed_of",
    "listed",
    "manifest_of",
    "read_manifest",
    "sha256_of",
]

MANIFEST = "manifest.json"
_KIND, _VERSION = "engramsql-export", 1
_BLOCK = 4 << 20
# What of a manifest must be the same for an export to go on, in words.
_SAME = {
    "format": "the format",
    "compression": "the compression",
    "rows_per_file": "--rows-per-file (rows_per_file=)",
    "schema": "the schema",
    "source": "what is exported",
    "metadata": "a version of the programs",
}
_SOURCE_WORDS = {
    "table": "the table",
    "tokens": "the files of tokens",
    "ids": "the files of row ids",
    "columns": "--columns (columns=)",
    "values": "--values (values=)",
    "round": "--round (round=)",
    "per": "--per (per=)",
    "history": "--history (history=)",
    "sql": "the query",
}


@dataclass(frozen=True)
class Part:
    """One file of an export."""

    file: str
    rows: int
    bytes: int
    sha256: str

    def record(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {"file": self.file, "rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}


def fixed_of(layout: Layout, source: Source, rows_per_file: int) -> dict[str, Any]:
    """What must be the same for an export to go on."""
    fixed = {
        "format": layout.format.name,
        "compression": layout.compression,
        "rows_per_file": rows_per_file,
        "schema": [{"name": field.name, "type": str(field.type)} for field in layout.schema],
        "source": {"kind": source.kind, **source.identity},
        "metadata": _metadata(layout),
    }
    # As it comes back from the manifest.
    round_trip: dict[str, Any] = json.loads(json.dumps(fixed))
    return round_trip


def _metadata(layout: Layout) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (layout.schema.metadata or {}).items()}


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an export.

    Raises:
        ArgumentError: If there is none, or it is another's.
    """
    name = directory / MANIFEST
    try:
        manifest = json.loads(name.read_bytes())
    except (OSError, ValueError) as error:
        raise ArgumentError(f"cannot read '{name}': {error}") from None
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ArgumentError(f"'{name}' is no manifest of an export")
    if manifest.get("version") != _VERSION:
        raise ArgumentError(f"'{name}' has version {manifest.get('version')}; this program reads version {_VERSION}")
    return manifest


def listed(manifest: dict[str, Any], directory: Path) -> list[Part]:
    """The files that a manifest lists.

    Raises:
        ArgumentError: If it does not say what an export writes there.
    """
    records: Any = manifest.get("files")
    size: Any = manifest.get("rows_per_file")
    parts: list[Part] = []
    for index, record in enumerate(records if isinstance(records, list) else [None]):
        if not isinstance(record, dict) or set(record) != {"file", "rows", "bytes", "sha256"}:
            break
        part = Part(**record)
        numbers = all(type(number) is int and number >= 0 for number in (part.rows, part.bytes, size))
        named = isinstance(part.file, str) and re.fullmatch(rf"part-{index:05d}\.[a-z]+", part.file)
        if not (numbers and named and isinstance(part.sha256, str)) or part.rows > size:
            break
        # Only the last one may have fewer; it is listed before the manifest says that nothing is missing.
        if part.rows < size and index < len(records) - 1:
            break
        parts.append(part)
    else:
        if sum(part.rows for part in parts) == manifest.get("rows"):
            return parts
    raise ArgumentError(
        f"'{directory / MANIFEST}' is not what an export wrote; throw the export away (--restart, restart=True), or "
        "write it to another place"
    )


def difference(manifest: dict[str, Any], fixed: dict[str, Any]) -> str | None:
    """What an unfinished export does not have in common with the one that was asked for."""
    old, new = manifest.get("source") or {}, fixed["source"]
    for key in (*_SOURCE_WORDS, *(new.keys() | old.keys())):
        if old.get(key) != new.get(key):
            return _SOURCE_WORDS.get(key, "what is exported")
    return next((words for key, words in _SAME.items() if manifest.get(key) != fixed[key]), None)


def manifest_of(fixed: dict[str, Any], parts: Sequence[Part], *, complete: bool) -> dict[str, Any]:
    """The manifest of an export of which these files are complete; ``complete``: they are all."""
    return {
        "kind": _KIND,
        "version": _VERSION,
        "complete": complete,
        **fixed,
        "rows": sum(part.rows for part in parts),
        "files": [part.record() for part in parts],
    }


def check_files(directory: Path, parts: list[Part], remedy: str) -> None:
    """Refuses files that are not what the manifest says, with what to do then.

    Raises:
        ArgumentError: For the first one that is gone or has another checksum.
    """
    for part in parts:
        try:
            found = sha256_of(directory / part.file)
        except (FileNotFoundError, IsADirectoryError):
            found = "no file"
        if found != part.sha256:
            raise ArgumentError(f"'{directory / part.file}' is not what was written there; {remedy}")


def finished(path: Path, fixed: dict[str, Any]) -> list[Part] | None:
    """The files of an export that is complete already, if it is this one.

    Raises:
        ArgumentError: If it is, and a file of it is not what was written.
    """
    try:
        manifest = read_manifest(path)
    except ArgumentError:
        return None
    if not manifest.get("complete") or difference(manifest, fixed) is not None:
        return None
    parts = listed(manifest, path)
    check_files(path, parts, "export it anew (--replace, replace=True)")
    return parts


def sha256_of(path: Path, stopped: Callable[[], bool] = lambda: False) -> str:
    """SHA-256 of a file in hex.

    Raises:
        CancelledError: As soon as ``stopped`` says so: it may have many gigabytes.
    """
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        block = bytearray(_BLOCK)
        view = memoryview(block)
        while count := file.readinto(view):
            digest.update(view[:count])
            if stopped():
                raise CancelledError
    return digest.hexdigest()
