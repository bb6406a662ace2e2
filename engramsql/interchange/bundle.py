"""Bundle manifests of engramdb-python: one JSON document that names a store or a view, its slot index and its hash.

Paths in it are relative to its directory.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.errors import ArgumentError, SourceError
from engramsql.interchange.damaged import DAMAGED
from engramsql.publishing import synced

if TYPE_CHECKING:
    from engramsql.engine import Spec, Table

__all__ = ["FILE", "Bundle", "find_bundle", "hash_members", "read_bundle", "store_member"]

FILE = "bundle.json"
SCHEMA = "engramdb-bundle-v1"
_FAMILY = "engramdb-bundle-"
# Manifests are small; what is not is something else.
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Bundle:
    """A manifest with its paths resolved."""

    path: Path
    """The manifest."""
    store: Path | None
    """Directory of the store, if it names one."""
    shards: int | None
    """Shards of the store."""
    rows_per_shard: int | None
    """Rows per shard of the store."""
    width: int | None
    """Bytes per row of the store."""
    view: Path | None
    """The view's file of records, if it names one."""
    slot_index: Path | None
    """The view's slot index: a directory, or an ``.npz`` file."""
    ple: dict[str, Any]
    """How rows are hashed and decoded, as it lies there."""

    @property
    def heads(self) -> int:
        """Row ids per token."""
        if self.ple.get("num_heads"):
            return _count(self.path, self.ple, "num_heads")
        return (_count(self.path, self.ple, "ngram_size") - 1) * _count(self.path, self.ple, "heads_per_ngram", 8)

    @property
    def rows(self) -> int | None:
        """Rows of the store."""
        return None if self.shards is None or self.rows_per_shard is None else self.shards * self.rows_per_shard

    def store_manifest(self) -> dict[str, Any]:
        """What ``manifest.json`` of the store says; empty without one, or if it is none."""
        if self.store is None:
            return {}
        try:
            data = json.loads((self.store / "manifest.json").read_bytes())
        except (OSError, ValueError):
            return {}  # whoever opens the store says what is wrong with it
        return data if isinstance(data, dict) else {}

    @property
    def scale(self) -> float | None:
        """Scale of the FP8 rows, if it says one."""
        value = self.ple.get("scale")
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise SourceError(f"'{self.path}': ple.scale must be a number, got {value!r:.40}")
        try:
            return None if value is None else float(value)
        except OverflowError:
            raise SourceError(f"'{self.path}': ple.scale is beyond every float") from None

    @property
    def format(self) -> str | None:
        """Value format: the peer reads FP8, one byte per value, and nothing else."""
        width = self.width
        if width is None or self.scale is None:
            return None
        dim = self.ple.get("head_dim") or _count(self.path, self.ple, "ple_embed_dim") // self.heads
        return "fp8_e4m3" if dim == width else None

    def is_hashed_as(self, spec: Spec) -> bool:
        """Whether its constants are those of ``spec``; those that it leaves out are the released ones for the peer."""
        found = {key: self.ple[key] for key in ("multipliers", "prime_sizes", "offsets", "eos") if self.ple.get(key)}
        constants = {
            "multipliers": spec.multipliers,
            "prime_sizes": spec.head_sizes,
            "offsets": spec.head_offsets,
            "eos": spec.eos_token,
        }
        return self.heads == spec.heads and all(constants[key] == value for key, value in found.items())


def find_bundle(path: str | os.PathLike[str]) -> Path | None:
    """The manifest that ``path`` names: itself, or ``bundle.json`` in it; None if it is something else."""
    path = Path(path)
    if path.is_dir():
        return path / FILE if (path / FILE).is_file() else None
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        return path if _FAMILY.encode() in path.read_bytes()[:_MOST_BYTES] else None
    except OSError:
        return None


def read_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Reads the manifest at ``path``.

    Raises:
        SourceError: If it cannot be read, lacks a member or names what is not there, with its place.
    """
    path = Path(os.path.abspath(path))
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SourceError(f"'{path}' is too large for a bundle manifest")
        data = json.loads(path.read_bytes())
    except OSError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"cannot read '{path}': {error.strerror or error}") from error
    except DAMAGED as error:
        raise SourceError(f"'{path}' is no JSON: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or not schema.startswith(_FAMILY):
        raise SourceError(f"'{path}' is no bundle manifest: its schema is {schema!r:.60}, not {_FAMILY}...")
    memory, ple = _object(path, data, "memory"), _object(path, data, "ple")
    kind = memory.get("type")
    if kind not in ("store", "view"):
        raise SourceError(f"'{path}': memory.type must be 'store' or 'view', got {kind!r:.40}")
    store = _object(path, memory, "store") if kind == "store" or memory.get("store") else None
    view = _object(path, memory, "view") if kind == "view" or memory.get("view") else None
    index = _object(path, memory, "slot_index") if memory.get("slot_index") is not None else None
    return Bundle(
        path=path,
        store=None if store is None else _path(path, store, "memory.store"),
        shards=None if store is None else _count(path, store, "shards"),
        rows_per_shard=None if store is None else _count(path, store, "rows_per_shard"),
        width=None if store is None else _count(path, store, "width"),
        view=None if view is None else _path(path, view, "memory.view"),
        slot_index=None if index is None else _path(path, index, "memory.slot_index"),
        ple=ple,
    )


def _object(path: Path, data: dict[str, Any], member: str) -> dict[str, Any]:
    value = data.get(member)
    if not isinstance(value, dict):
        raise SourceError(f"'{path}' has no object '{member}'")
    return value


def _path(manifest: Path, data: dict[str, Any], where: str) -> Path:
    value = data.get("path")
    if not isinstance(value, str) or not value:
        raise SourceError(f"'{manifest}': {where} has no path")
    found = manifest.parent / value
    if not found.exists():
        raise SourceError(f"'{manifest}': {where} names '{found}', which does not exist")
    return found


def _count(manifest: Path, data: dict[str, Any], member: str, default: int | None = None) -> int:
    value = data.get(member) or default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise SourceError(f"'{manifest}': {member} must be a positive 64-bit number, got {value!r:.40}")
    return value


def hash_members(spec: Spec, row_bytes: int, scale: float | None) -> dict[str, Any]:
    """The object ``ple`` for a table of ``spec``.

    Raises:
        ArgumentError: If the peer cannot hash so.
    """
    orders = spec.ngram_orders
    if spec.family != "qwen_ple_v1" or spec.eos_token is None:
        raise ArgumentError(f"engramdb-python hashes as qwen_ple_v1 does, the table as {spec.family}")
    ngram_size = max(orders)
    return {
        "ple_embed_dim": spec.heads * row_bytes,
        "num_heads": spec.heads,
        "ngram_size": ngram_size,
        "heads_per_ngram": spec.heads // (ngram_size - 1),
        "head_dim": row_bytes,
        "scale": scale,
        "eos": spec.eos_token,
        "multipliers": spec.multipliers,
        "prime_sizes": spec.head_sizes,
        "offsets": spec.head_offsets,
    }


def store_member(table: Table, base: Path) -> dict[str, Any]:
    """The object ``store`` for a table whose rows lie in a store directory.

    Raises:
        ArgumentError: If they lie elsewhere or in shards that the peer cannot address.
    """
    shards = table.shards()
    names = [Path(shard.file).name for shard in shards]
    whole = all(shard.offset == 0 for shard in shards) and len({shard.shard for shard in shards}) == len(shards)
    even = len({shard.rows for shard in shards[:-1]}) <= 1 and shards[-1].rows <= shards[0].rows
    if not (whole and even and names[0].partition("_")[0] in ("shard", "badge")):
        raise ArgumentError(
            f"table '{table.name}' is no store that engramdb-python can open; make one with: engramsql build"
        )
    directory = Path(shards[0].file).parent
    inside = directory.is_relative_to(base)
    return {
        "path": os.path.relpath(directory, base) if inside else str(directory),
        "shards": len(shards),
        "rows_per_shard": shards[0].rows,
        "width": table.row_bytes,
    }


def write_bundle(directory: Path, id: str, memory: dict[str, Any], ple: dict[str, Any]) -> None:
    """Writes ``bundle.json`` in ``directory``, which is being made."""
    document = {"schema": SCHEMA, "id": id, "memory": memory, "ple": ple, "readers": []}
    with synced(directory / FILE) as file:
        file.write((json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
