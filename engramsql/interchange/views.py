"""Views of engramdb-python: ``NAME.bin`` with a record per slot, and ``NAME.manifest.json`` beside it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engramsql.engine import PeerIndex
from engramsql.errors import ArgumentError, SourceError, StorageError
from engramsql.interchange.bundle import hash_members, store_member, write_bundle
from engramsql.interchange.keys import BLOCK_KEYS, read_keys, write_keys
from engramsql.interchange.npz import read_slot_index, write_slot_index
from engramsql.publishing import new_directory, synced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from engramsql.engine import Table, View

__all__ = ["INDEX_FORMATS", "PeerView", "export_view", "keys_of_index", "read_view"]

# Name of a slot index format to its folder or file beside an exported view.
INDEX_FORMATS = {"v1": "slot_index_v1", "v2": "slot_index_v2", "v3": "slot_index_v3", "npz": "slot_index.npz"}
# What a file of records without a manifest holds.
_SLOT_BYTES = 2560
_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class PeerView:
    """A file of records and what its manifest says."""

    records: Path
    """The file."""
    slots: int
    """Records."""
    slot_bytes: int
    """Bytes from one record to the next."""
    record_bytes: int
    """Bytes of one record, at the beginning of its slot."""
    heads: int | None
    """Row ids per key, if the manifest says it."""
    access_order: bool
    """Whether records are in the order of the corpus."""
    keys: Path | None
    """The keys file that the manifest names, if it is there."""


def read_view(path: str | os.PathLike[str]) -> PeerView:
    """Looks at a file of records and its manifest.

    Raises:
        SourceError: If either cannot be read, or they contradict each other.
    """
    records = Path(os.path.abspath(path))
    manifest = records.with_suffix(".manifest.json")
    try:
        size = records.stat().st_size
        if not records.is_file():
            raise SourceError(f"'{records}' is no file of records; name the .bin file of a view")
        data: dict[str, Any] = json.loads(manifest.read_bytes()) if manifest.exists() else {}
    except OSError as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"cannot read '{records}': {error.strerror or error}") from error
    except ValueError as error:
        raise SourceError(f"'{manifest}' is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise SourceError(f"'{manifest}' is no JSON object")
    slot_bytes = _count(manifest, data, "slot_bytes", _SLOT_BYTES)
    record_bytes = _count(manifest, data, "record_bytes", slot_bytes)
    if record_bytes > slot_bytes:
        raise SourceError(f"'{manifest}': records of {record_bytes} bytes do not fit slots of {slot_bytes}")
    whole, rest = divmod(size, slot_bytes)
    slots = _count(manifest, data, "grans", whole) if data.get("grans") else whole
    if slots > whole or (slots == whole and rest):
        raise SourceError(
            f"'{records}' has {size} bytes, which are not the {slots} slots of {slot_bytes} bytes that it should hold"
        )
    keys = data.get("keys_out") or data.get("keys")
    keys_path = records.parent / keys if isinstance(keys, str) else None
    return PeerView(
        records=records,
        slots=slots,
        slot_bytes=slot_bytes,
        record_bytes=record_bytes,
        heads=_count(manifest, data, "heads", 1) if data.get("heads") else None,
        access_order=data.get("layout") == "access-order",
        keys=keys_path if keys_path is not None and keys_path.is_file() else None,
    )


def _count(manifest: Path, data: dict[str, Any], member: str, default: int) -> int:
    value = data.get(member) or default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise SourceError(f"'{manifest}': {member} must be a positive 64-bit number, got {value!r:.40}")
    return value


def keys_of_index(
    path: str | os.PathLike[str], slots: int, heads: int, scratch: str | os.PathLike[str] | None = None
) -> Iterator[NDArray[np.int64]]:
    """The keys of a slot index of the peer in slot order.

    Args:
        path: Directory of a disk index (v1 to v3), or an ``.npz`` file.
        slots: Slots of the view; each must have exactly one key.
        heads: Row ids per key.
        scratch: Directory for a temporary file of 8 bytes per row id: an index has its keys in another order.

    Yields:
        int64 [n, heads].

    Raises:
        ArgumentError: If a slot has no key or several, or keys have another number of row ids.
    """
    name = os.fspath(path)
    seen = np.zeros(slots, bool)
    with tempfile.TemporaryFile(dir=scratch) as file:
        try:
            # Room for all of it: a write through a map to a full disk would end the process.
            os.posix_fallocate(file.fileno(), 0, max(1, 8 * slots * heads))
        except OSError as error:
            place = os.fspath(scratch) if scratch is not None else tempfile.gettempdir()
            raise StorageError(f"no room for the {slots} keys of '{name}' in '{place}': {error.strerror}") from None
        keys = np.memmap(file, np.int64, "r+", shape=(slots, heads))

        def take(block: NDArray[np.int64], of: NDArray[np.int64]) -> None:
            if block.shape[1] != heads:
                raise ArgumentError(f"'{name}' has keys of {block.shape[1]} row ids, the view's have {heads}")
            beyond = (of < 0) | (of >= slots)
            if beyond.any():
                raise ArgumentError(f"'{name}' names slot {of[beyond][0]}, the view has {slots} slots")
            if seen[of].any() or len(np.unique(of)) != len(of):
                raise ArgumentError(f"'{name}' has more than one key for a slot; it belongs to another view")
            keys[of], seen[of] = block, True

        if os.path.isdir(name):
            PeerIndex.open(name).entries(take)
        else:
            for block, of in read_slot_index(name):
                take(block, of)
        if not seen.all():
            raise ArgumentError(f"'{name}' has no key for slot {int(np.argmin(seen))}; it belongs to another view")
        for first in range(0, slots, BLOCK_KEYS):
            yield np.asarray(keys[first : first + BLOCK_KEYS])


def export_view(
    view: View,
    table: Table,
    directory: str | os.PathLike[str],
    *,
    slot_bytes: int | None = None,
    indexes: Sequence[str] = (),
    progress: Callable[[str, int, int], object] | None = None,
) -> Path:
    """Writes a view as engramdb-python reads it: records, manifest, keys, slot indexes, and a bundle if it can hash so.

    Args:
        view: The view, whose records are rows.
        table: Its table.
        directory: A new directory.
        slot_bytes: Bytes from one record to the next; by default those of a record.
        indexes: Which of INDEX_FORMATS to write.
        progress: Called with the stage, bytes done and bytes to do.

    Raises:
        ArgumentError: If the view was built from another state of its table, the peer has no form for it, or
            ``directory`` exists.
        StorageError: If something cannot be written.
    """
    if not view.usable:
        raise ArgumentError(f"view '{view.name}' {view.why}")
    if view.form != "rows":
        raise ArgumentError(
            f"view '{view.name}' holds {view.form}; engramdb-python reads rows: build one with form rows"
        )
    slot_bytes = view.record_bytes if slot_bytes is None else slot_bytes
    if slot_bytes < view.record_bytes:
        raise ArgumentError(f"slots of {slot_bytes} bytes are too small for records of {view.record_bytes}")
    unknown = [index for index in indexes if index not in INDEX_FORMATS]
    if unknown:
        raise ArgumentError(f"no slot index format '{unknown[0]}'; one of {', '.join(INDEX_FORMATS)}")
    show = progress or (lambda stage, done, total: None)
    with new_directory(directory) as unfinished:
        with synced(unfinished / f"{view.name}.bin") as file:
            _write_records(view, slot_bytes, file, show)
        _write_manifest(view, slot_bytes, unfinished)
        with synced(unfinished / "keys.txt") as file:
            write_keys(_keys_of(view, show), file)
        for index in indexes:
            write_index(view, index, unfinished / INDEX_FORMATS[index], show)
        _write_bundle(view, table, indexes, unfinished, Path(directory).resolve())
    return Path(directory)


def _blocks_of(view: View, block: int) -> Iterator[NDArray[np.int64]]:
    for first in range(0, view.slots, block):
        yield np.arange(first, min(first + block, view.slots), dtype=np.int64)


def _keys_of(view: View, show: Callable[[str, int, int], object]) -> Iterator[NDArray[np.int64]]:
    key_bytes = 8 * view.heads
    for slots in _blocks_of(view, BLOCK_KEYS):
        yield view.keys(slots)
        show("keys", (int(slots[-1]) + 1) * key_bytes, view.slots * key_bytes)


def _write_records(view: View, slot_bytes: int, file: IO[bytes], show: Callable[[str, int, int], object]) -> None:
    # The rest of a slot stays zero.
    block = np.zeros((max(1, _BLOCK_BYTES // slot_bytes), slot_bytes), np.uint8)
    for slots in _blocks_of(view, len(block)):
        block[: len(slots), : view.record_bytes] = view.records(slots)
        file.write(block[: len(slots)].data)
        show("records", (int(slots[-1]) + 1) * slot_bytes, view.slots * slot_bytes)


def _write_manifest(view: View, slot_bytes: int, directory: Path) -> None:
    manifest: dict[str, Any] = {
        "grans": view.slots,
        "heads": view.heads,
        "slot_bytes": slot_bytes,
        "record_bytes": view.record_bytes,
        "rows": view.slots * view.heads,
        "source": f"engramsql view '{view.name}' of table '{view.table}'",
    }
    if view.order == "access":
        manifest["layout"] = "access-order"
    with synced(directory / f"{view.name}.manifest.json") as file:
        file.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def write_index(view: View, format: str, path: Path, progress: Callable[[str, int, int], object] | None = None) -> None:
    """Writes a slot index of a view in one of INDEX_FORMATS at ``path``.

    Raises:
        ArgumentError: If the peer's format cannot hold it, or ``path`` exists.
        StorageError: If it cannot be written.
    """
    show = progress or (lambda stage, done, total: None)
    if format == "npz":
        write_slot_index(
            path,
            view.slots,
            view.heads,
            lambda: _keys_of(view, show),
            lambda: _blocks_of(view, BLOCK_KEYS),
        )
    else:
        view.write_peer_index(path, int(format[1:]), progress=show)


def _write_bundle(view: View, table: Table, indexes: Sequence[str], directory: Path, final: Path) -> None:
    """The bundle, where the peer can hash as the table does and a slot index is there."""
    if not indexes or table.spec is None or table.format != "fp8_e4m3":
        return
    try:
        ple = hash_members(table.spec, table.row_bytes, table.scale)
    except ArgumentError:
        return
    index = next((index for index in reversed(indexes) if index != "npz"), indexes[0])
    memory: dict[str, Any] = {
        "type": "view",
        "view": {"path": f"{view.name}.bin"},
        "slot_index": {"path": INDEX_FORMATS[index], "type": "memory" if index == "npz" else "disk"},
    }
    # The view alone is a bundle too.
    with contextlib.suppress(ArgumentError):
        memory["store"] = store_member(table, final)
    write_bundle(directory, view.name, memory, ple)


def keys_for(
    view: PeerView,
    heads: int,
    keys: str | os.PathLike[str] | None,
    index: str | os.PathLike[str] | None,
    scratch: str | os.PathLike[str] | None = None,
) -> Iterator[NDArray[np.int64]]:
    """The keys of a peer's view, from a keys file or a slot index; without either, from the file its manifest names.

    Raises:
        ArgumentError: If there is nothing to take them from, or both are given.
    """
    if keys is not None and index is not None:
        raise ArgumentError("give the keys or a slot index of the view, not both")
    if index is not None:
        return keys_of_index(index, view.slots, heads, scratch)
    source = view.keys if keys is None else keys
    if source is None:
        raise ArgumentError(
            f"'{view.records}' alone does not say whose records it holds; give its keys or slot index "
            "(--keys FILE or --index PATH; keys= or index= in Python)"
        )
    return read_keys(source, heads)
