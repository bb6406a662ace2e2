"""Peers that read the same rows: each is made from the extents of the table and imports its package only then."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from engramsql.bench.options import PEERS
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engramsql.bench.target import Target

__all__ = ["Peer", "fresh_ids", "make_peer", "require_peers"]

# Below it the ids of a call to torch, numpy and arrow lie in one shard: they know no shards, and a call for each would
# cost them what they do not owe.
_ONE_SHARD_BELOW = 8192


class Peer(Protocol):
    """Somebody who fetches rows."""

    path: str
    """What it does, for the report."""

    def fetch(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> Callable[[], object]:
        """A call that reads the rows of ids, into ``out`` if it can; what the ids cost to convert is not in it."""


def require_peers(names: list[str]) -> None:
    """Refuses a peer whose package is not installed."""
    modules = {"engramdb": "engramdb", "torch": "torch", "numpy": "numpy", "arrow": "pyarrow"}
    for name in names:
        if importlib.util.find_spec(modules[name]) is None:
            raise ArgumentError(f"--against {name} needs a package that is not installed: pip install {PEERS[name]}")


def make_peer(name: str, target: Target) -> Peer:
    """The peer on the table.

    Raises:
        ArgumentError: If the peer cannot read such a table.
    """
    kinds: dict[str, Callable[[Target], Peer]] = {
        "engramdb": _Engramdb,
        "torch": _Torch,
        "numpy": _Numpy,
        "arrow": _Arrow,
    }
    return kinds[name](target)


def fresh_ids(peer: str, target: Target, rows: int, limit: int) -> NDArray[np.int64]:
    """Random row ids below ``limit``; of one shard for a small batch of a peer that knows no shards."""
    import numpy as np

    rng = np.random.default_rng()
    if peer in ("torch", "numpy", "arrow") and rows < _ONE_SHARD_BELOW:
        firsts = [shard for shard in target.parts if shard["first_row"] < limit]
        shard = firsts[int(rng.integers(len(firsts)))]
        first = shard["first_row"]
        return rng.integers(first, min(first + shard["rows"], limit), rows)
    return rng.integers(0, limit, rows)


class _Engramdb:
    path = "engramdb.Store.fetch"

    def __init__(self, target: Target) -> None:
        import engramdb

        shards = target.parts
        directories = {os.path.dirname(shard["file"]) for shard in shards}
        names = [os.path.basename(shard["file"]) for shard in shards]
        even = len({shard["rows"] for shard in shards}) == 1 and all(shard["offset"] == 0 for shard in shards)
        if len(directories) != 1 or not even or names != [f"shard_{i:03d}.bin" for i in range(len(shards))]:
            raise ArgumentError(f"engramdb reads stores of even shards only, and {target.label} is none; leave it out")
        self._store = engramdb.Store(
            directories.pop(), shards=len(shards), rows_per_shard=shards[0]["rows"], width=target.row_bytes
        )

    def fetch(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> Callable[[], object]:
        wanted = ids.tolist()
        return lambda: self._store.fetch(wanted)


class _ByExtent:
    """One mapped matrix per extent; ids are sorted to the extents before the clock runs, in favour of the peer."""

    def __init__(self, target: Target) -> None:
        import numpy as np

        by_shard: dict[int, list[dict[str, Any]]] = {}
        for shard in target.parts:
            by_shard.setdefault(shard["shard"], []).append(shard)
        if any(len(parts) > 1 for parts in by_shard.values()):
            raise ArgumentError(
                f"rows of {target.label} lie in two parts, which no peer but engramsql joins; leave it out"
            )
        self.firsts = np.array([shard["first_row"] for shard in target.parts])
        self.matrices: list[Any] = [
            np.memmap(s["file"], np.uint8, "r", s["offset"], (s["rows"], s["bytes"] // s["rows"])) for s in target.parts
        ]

    def split(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> list[tuple[int, Any, Any]]:
        """(extent, ids within it, part of the output)."""
        import numpy as np

        extent = np.searchsorted(self.firsts, ids, side="right") - 1
        pieces, start = [], 0
        for k in np.unique(extent).tolist():
            local = ids[extent == k] - self.firsts[k]
            pieces.append((k, local, out[start : start + len(local)]))
            start += len(local)
        return pieces


class _Numpy(_ByExtent):
    path = "numpy.take on numpy.memmap, out= reused"

    def fetch(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> Callable[[], object]:
        import numpy as np

        pieces = [(self.matrices[k], local, part) for k, local, part in self.split(ids, out)]

        def call() -> None:
            for matrix, local, part in pieces:
                # Any other mode copies through a buffer.
                np.take(matrix, local, axis=0, out=part, mode="clip")

        return call


class _Torch(_ByExtent):
    path = "torch.index_select on a mapped tensor, out= reused"

    def __init__(self, target: Target) -> None:
        import warnings

        import torch

        super().__init__(target)
        self._torch = torch
        with warnings.catch_warnings():
            # The maps are read-only, and nobody writes.
            warnings.simplefilter("ignore")
            self._tensors = [torch.from_numpy(matrix) for matrix in self.matrices]

    def fetch(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> Callable[[], object]:
        torch = self._torch
        pieces = [
            (self._tensors[k], torch.from_numpy(local), torch.from_numpy(part))
            for k, local, part in self.split(ids, out)
        ]

        def call() -> None:
            for tensor, local, part in pieces:
                torch.index_select(tensor, 0, local, out=part)

        return call


class _Arrow(_ByExtent):
    path = "pyarrow FixedSizeBinary take over a memory map"

    def __init__(self, target: Target) -> None:
        import numpy as np
        import pyarrow as pa

        super().__init__(target)
        self._pa = pa
        width = pa.binary(target.row_bytes)
        self._arrays = []
        for shard in target.parts:
            with pa.memory_map(shard["file"]) as file:
                file.seek(shard["offset"])
                buffer = file.read_buffer(shard["bytes"])
            self._arrays.append(pa.FixedSizeBinaryArray.from_buffers(width, shard["rows"], [None, buffer]))
            # These are the pages that it takes from; the maps of the base class are other ones.
            self.matrices[len(self._arrays) - 1] = np.frombuffer(buffer, np.uint8).reshape(shard["rows"], -1)

    def fetch(self, ids: NDArray[np.int64], out: NDArray[np.uint8]) -> Callable[[], object]:
        pieces = [(self._arrays[k], self._pa.array(local)) for k, local, _ in self.split(ids, out)]

        def call() -> None:
            for array, local in pieces:
                array.take(local)

        return call
