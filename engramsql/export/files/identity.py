"""What tells one export from another, and what its files say of where they come from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engramsql._directory import CATALOG_FILE
from engramsql.data_files import what_was_meant
from engramsql.errors import ArgumentError
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.engine import Spec, Table

__all__ = ["changed", "described", "file_identity", "readable", "table_identity"]


def table_identity(table: Table) -> dict[str, Any]:
    """The table as the manifest has it, with a digest of where and when its bytes were written."""
    files: dict[str, tuple[int, int]] = {}
    digest = hashlib.blake2b(digest_size=16)
    for shard in table.shards():
        if shard.file not in files:
            found = os.stat(shard.file)
            files[shard.file] = (found.st_size, found.st_mtime_ns)
        part = (shard.file, *files[shard.file], shard.first_row, shard.rows, shard.offset, shard.bytes)
        digest.update(json.dumps(part).encode())
    return {
        "name": table.name,
        "rows": table.rows,
        "row_bytes": table.row_bytes,
        "dim": table.dim,
        "format": table.format,
        "scale": table.scale,
        "layer": table.layer,
        "spec": None if table.spec is None else _spec_identity(table.spec),
        "files": digest.hexdigest(),
    }


def _spec_identity(spec: Spec) -> dict[str, Any]:
    constants = [
        spec.head_sizes, spec.head_offsets, spec.ngram_orders, spec.multipliers, spec.vocab_size, spec.eos_token,
    ]  # fmt: skip
    digest = hashlib.blake2b(json.dumps(constants).encode(), digest_size=16)
    return {"name": spec.name, "family": spec.family, "constants": digest.hexdigest()}


def file_identity(paths: Sequence[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """Names, sizes and times of files.

    Raises:
        ArgumentError: If one is not there.
    """
    found = []
    for path in paths:
        name = os.path.abspath(os.fspath(path))
        try:
            status = os.stat(name)
        except OSError as error:
            if os.fspath(path) == "-":
                raise ArgumentError("'-' is no file: tokens and ids are read from files; name one") from None
            raise ArgumentError(
                f"cannot read '{os.fspath(path)}': {error.strerror}{what_was_meant(os.fspath(path))}"
            ) from None
        found.append({"file": name, "bytes": status.st_size, "modified_ns": status.st_mtime_ns})
    return found


def changed(table: Table, begun: dict[str, Any]) -> bool:
    """Whether the files of a table are others than when its identity was ``begun``."""
    try:
        return table_identity(table) != begun
    except OSError:
        return True


def readable(text: str) -> str:
    r"""The text with the bytes of a path that are no UTF-8 as ``\xff``: files and their metadata are UTF-8.

    Example:
        >>> print(readable(os.fsdecode(b"a\xff.txt")))
        a\xff.txt
    """
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def described(database: Database, table: Table | None, kind: str, values: str | None) -> dict[str, str]:
    """Metadata of the schema: where the records come from and how to read their values. Texts all."""
    import duckdb
    import pyarrow as pa

    import engramsql
    from engramsql.engine import ENGINE_VERSION

    found: dict[str, object] = {
        "engramsql.export": kind,
        "engramsql.version": engramsql.__version__,
        "engramsql.engine_version": ENGINE_VERSION,
        "engramsql.duckdb_version": duckdb.__version__,
        "engramsql.pyarrow_version": pa.__version__,
        "engramsql.values": values,
    }
    if table is not None:
        found |= {
            "engramsql.table": table.name,
            "engramsql.rows": table.rows,
            "engramsql.row_bytes": table.row_bytes,
            "engramsql.dim": table.dim,
            "engramsql.format": table.format,
            "engramsql.scale": None if table.scale is None else repr(table.scale),
            "engramsql.layer": table.layer,
            "engramsql.spec": None if table.spec is None else table.spec.name,
            "engramsql.heads": len(table.heads()) or None,
            "engramsql.source": os.fspath(table.source),
            "engramsql.source_digest": _digest(database, table),
        }
    return {key: readable(str(value)) for key, value in found.items() if value is not None}


def _digest(database: Database, table: Table) -> str | None:
    """Digest of a store that describes itself, as the catalog keeps it."""
    directory = database.directory
    if directory is None:
        return None
    try:
        catalog = json.loads((directory / CATALOG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for entry in catalog.get("tables", []):
        if folded(str(entry.get("name"))) == folded(table.name):
            digest = entry.get("digest")
            return None if digest is None else str(digest)
    return None
