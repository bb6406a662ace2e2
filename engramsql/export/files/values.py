"""Vectors and rows of a table as Arrow arrays over memory that is used again: float32, float16, bfloat16, raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from engramsql.engine import decode
from engramsql.errors import ArgumentError, FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.engine import Table

__all__ = ["VALUE_KEY", "Values", "ValuesName"]

ValuesName = Literal["float32", "float16", "bfloat16", "row"]

VALUE_KEY = b"engramsql.values"
"""Metadata of a field of vectors: what its values are. Arrow has no bfloat16, so those are uint16 bit patterns."""

_ITEM = {"float32": 4, "float16": 2, "bfloat16": 2, "row": 1}
# Values converted at a time: they stay in the processor's cache.
_STEP_VALUES = 1 << 16


@dataclass(frozen=True)
class Values:
    """What the vectors of an export are made of.

    Args:
        table: The table.
        name: Type of the values, or ``"row"``: the stored bytes.
        rounded: Whether float16 may round; otherwise a value that float16 does not have is refused.
        rows: Rows side by side in one vector: 1, or the heads of e_t.
    """

    table: Table
    name: ValuesName
    rounded: bool
    rows: int

    def __post_init__(self) -> None:
        if self.name != "row" and self.table.dim is None:
            raise FormatError(
                f"table '{self.table.name}' has no value format, so its rows cannot be decoded; export the bytes with "
                "--values row (values='row'), or register it with a format"
            )

    @cached_property
    def width(self) -> int:
        """Values of one vector; bytes, of rows."""
        return self.rows * (self.table.row_bytes if self.name == "row" else self.table.dim or 0)

    @property
    def vector_bytes(self) -> int:
        """Bytes of one vector."""
        return self.width * _ITEM[self.name]

    @cached_property
    def type(self) -> pa.DataType:
        """Arrow type of one vector."""
        if self.name == "row":
            return pa.binary(self.width)
        return pa.list_(self._item, self.width)

    @property
    def field_metadata(self) -> dict[bytes, bytes]:
        """What the field of the vectors says of itself."""
        return {VALUE_KEY: self.name.encode()}

    @cached_property
    def _item(self) -> pa.DataType:
        return {"float32": pa.float32(), "float16": pa.float16(), "bfloat16": pa.uint16()}[self.name]

    def read(
        self,
        ids: NDArray[np.int64],
        memory: NDArray[np.uint8],
        valid: NDArray[np.bool_] | None = None,
        *,
        scanned: bool = False,
    ) -> pa.Array:
        """The vectors of row ids, in ``memory``.

        Args:
            ids: Row ids, int64 [n] or [n, rows].
            memory: Room for n vectors; the array is valid as long as nobody else writes there.
            valid: Which ids are no NULL, bool [n]; the id of a NULL is not looked at, and its vector is NULL.
            scanned: Whether the ids follow one another and are read in a pass over the table, past the row cache.

        Raises:
            RowIdError: If an id is outside the table.
            ReadError: If a row cannot be read.
            ArgumentError: If a value is no float16 and may not be rounded, or is beyond its range.
        """
        count = len(ids)
        out = memory[: count * self.vector_bytes]
        if valid is None or valid.all():
            self.fill(ids, out, scanned=scanned)
            return self.array(out, count, None)
        kept = np.flatnonzero(valid)
        some = np.empty(len(kept) * self.vector_bytes, np.uint8)
        self.fill(ids[kept], some)
        # The slots of NULLs are there too: without them every later vector would move up.
        out[:] = 0
        out.reshape(count, self.vector_bytes)[kept] = some.reshape(len(kept), self.vector_bytes)
        return self.array(out, count, valid)

    def fill(self, ids: NDArray[np.int64], out: NDArray[np.uint8], *, scanned: bool = False) -> None:
        """The same into plain memory of exactly that size."""
        if self.name == "row":
            self._stored(ids, out.reshape(*ids.shape, self.table.row_bytes), scanned)
        elif self.name == "float16":
            self._halves(ids.reshape(-1), out.view(np.float16), scanned)
        else:
            dtype = np.float32 if self.name == "float32" else np.uint16
            self._decoded(ids, out.view(dtype).reshape(*ids.shape, self.table.dim or 0), scanned)

    def _stored(self, ids: NDArray[np.int64], out: NDArray[np.uint8], scanned: bool) -> None:
        """Bytes of rows [..., row_bytes]."""
        if scanned and len(ids):
            self.table.scan(int(ids[0]), len(ids), out=out)
        else:
            self.table.fetch(ids, out=out)

    def _decoded(self, ids: NDArray[np.int64], out: NDArray[Any], scanned: bool) -> None:
        """Values of rows [..., dim], of the type of ``out``."""
        dtype: Literal["float32", "bfloat16"] = "float32" if out.dtype == np.float32 else "bfloat16"
        if scanned and len(ids):
            self.table.scan(int(ids[0]), len(ids), out=out, dtype=dtype)
        else:
            self.table.vectors(ids, out=out, dtype=dtype)

    def array(self, out: NDArray[np.uint8], count: int, valid: NDArray[np.bool_] | None) -> pa.Array:
        """``count`` vectors that lie in ``out``, without a copy."""
        nulls = 0 if valid is None else int(count - valid.sum())
        bits = None if valid is None or not nulls else pa.py_buffer(np.packbits(valid, bitorder="little"))
        body = pa.py_buffer(out)
        if self.name == "row":
            return pa.Array.from_buffers(self.type, count, [bits, body], null_count=nulls)
        items = pa.Array.from_buffers(self._item, count * self.width, [None, body], null_count=0)
        return pa.Array.from_buffers(self.type, count, [bits], null_count=nulls, children=[items])

    @cached_property
    def _halves_of_bytes(self) -> NDArray[np.uint32] | None:
        """Two float16 for each two bytes of a row, where a byte is a value and each of them has a float16 to be."""
        table = self.table
        if table.row_bytes != table.dim or table.format is None:
            return None
        singles = decode(bytes(range(256)), table.format, table.scale)
        with np.errstate(over="ignore"):
            halves = singles.astype(np.float16)
        back = halves.astype(np.float32)
        same = (back == singles) | np.isnan(singles)
        if not (same if not self.rounded else same | np.isfinite(back)).all():
            return None
        bits = halves.view(np.uint16).astype(np.uint32)
        # Little endian: the first byte is the low one, and so is its half.
        pairs: NDArray[np.uint32] = (bits[None, :] | (bits[:, None] << np.uint32(16))).reshape(-1)
        return pairs

    def _halves(self, ids: NDArray[np.int64], out: NDArray[np.float16], scanned: bool) -> None:
        """float16 of rows: read together, converted while they are in the processor's cache."""
        dim = self.table.dim or 1
        pairs = self._halves_of_bytes if dim % 2 == 0 else None
        if pairs is not None:
            rows = np.empty((len(ids), dim), np.uint8)
            self._stored(ids, rows, scanned)
            found, to = rows.reshape(-1).view(np.uint16), out.view(np.uint32)
            for first in range(0, len(found), _STEP_VALUES):
                part = slice(first, first + _STEP_VALUES)
                np.take(pairs, found[part], out=to[part], mode="clip")
            return
        step = max(1, _STEP_VALUES * 8 // dim)
        singles = np.empty((min(step, len(ids)), dim), np.float32)
        for first in range(0, len(ids), step):
            some = ids[first : first + step]
            decoded = singles[: len(some)]
            self._decoded(some, decoded, scanned)
            self._rounded(decoded.reshape(-1), some, out[first * dim : (first + len(some)) * dim])

    def _rounded(self, singles: NDArray[np.float32], ids: NDArray[np.int64], out: NDArray[np.float16]) -> None:
        with np.errstate(over="ignore"):
            np.copyto(out, singles, casting="same_kind")
        back = out.astype(np.float32)
        wrong = np.isinf(back) & np.isfinite(singles) if self.rounded else (back != singles) & ~np.isnan(singles)
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        dim = self.table.dim or 1
        beyond = np.isinf(back[at])
        raise ArgumentError(
            f"table '{self.table.name}', row {ids[at // dim]}, value {at % dim}: {singles[at]} is "
            f"{'beyond the range of float16 (65504)' if beyond else 'no float16'}; export float32 or bfloat16"
            f"{'' if beyond or self.rounded else ', or let float16 round (--round, round=True)'}"
        )
