"""Row ids from wherever they lie: a list, an array, Arrow, or files of every kind that tokens are read from.

In files they are a column (or array) of integers, one id per row, or of lists, as ``rowids_for_seq`` gives them; the
lists are read one after the other. A NULL id stays NULL.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engramsql.corpus import integers
from engramsql.data_files import kind_of, named_errors
from engramsql.data_files.arrays import open_matrix
from engramsql.data_files.columns import arrow_batches, is_list, plain, plain_type
from engramsql.data_files.texts import csv_cells, decimal_words, json_values, text_blocks
from engramsql.errors import ArgumentError, ArgumentTypeError, RowIdError, RowIdTypeError, TokenIdError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from engramsql.data_files.texts import Cell
    from engramsql.engine import Table

__all__ = ["IdBlock", "id_blocks", "ids_of_file", "origin_of", "paths_of"]

_BLOCK_IDS = 1 << 20
# 2^63 has 19 digits.
_MOST_DIGITS = 19
_BEYOND = 1 << 63


class IdBlock(NamedTuple):
    """Some row ids in order."""

    ids: NDArray[np.int64]
    """int64 [n]; what stands where an id is NULL does not matter."""
    valid: NDArray[np.bool_] | None = None
    """Which are no NULL; None: all."""
    numbers: NDArray[np.int64] | None = None
    """Row or line (1-based) of each in its file."""
    file: str = ""
    """That file and what the numbers count, as in ``'a.txt', line``."""


def paths_of(given: object) -> list[str | os.PathLike[str]] | None:
    """The files, if it is a path or several."""
    if isinstance(given, (str, os.PathLike)):
        return [given]
    if isinstance(given, (list, tuple)) and given and all(isinstance(part, (str, os.PathLike)) for part in given):
        return list(given)
    return None


def origin_of(given: object, column: str | None) -> dict[str, Any] | None:
    """What tells files from others without reading them: names, sizes and times; None for what is in memory.

    Raises:
        ArgumentError: If a file is not there.
    """
    paths = paths_of(given)
    if paths is None:
        return None
    from engramsql.export.files.identity import file_identity

    return {"files": file_identity(paths), "column": column}


def id_blocks(given: object, column: str | None, table: Table) -> Iterator[IdBlock]:
    """Row ids of a table in any of their forms, in order.

    Args:
        given: A list (of lists) or integer array, an Arrow array, a path, or a list of paths. None in a list, a NULL in
            Arrow, and an empty cell of CSV is a NULL id.
        column: The column of a file.
        table: The table.

    Raises:
        RowIdError: If an id is outside the table, with its place.
        RowIdTypeError: If one is no integer.
        ArgumentError: If a file cannot be read.
    """
    paths = paths_of(given)
    if paths is None and column is not None:
        raise ArgumentError(f"column '{column}' belongs to a file, got {type(given).__name__}")
    found = _of_memory(given) if paths is None else (b for path in paths for b in ids_of_file(path, column))
    for block in found:
        _check(block, table)
        yield block


def _check(block: IdBlock, table: Table) -> None:
    """Refuses ids outside the table by their place."""
    ids, valid, numbers, file = block
    wrong = (ids < 0) | (ids >= table.rows)
    if valid is not None:
        wrong &= valid
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    where = f"{file} {numbers[at]}: " if numbers is not None else f"position {at}: "
    raise RowIdError(f"{where}row id {ids[at]} is outside table '{table.name}' (0 to {table.rows - 1})")


def _of_memory(given: Any) -> Iterator[IdBlock]:
    import pyarrow as pa

    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        for chunk in given.chunks if isinstance(given, pa.ChunkedArray) else [given]:
            yield from _of_arrow(chunk, "row ids", None)
        return
    if isinstance(given, (bytes, bytearray, dict, set)) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"ids must be row ids, an array of them or a path, got {type(given).__name__}")
    if isinstance(given, (list, tuple)):
        yield from _of_list(given, "row ids")
        return
    if not (hasattr(given, "__array__") or hasattr(given, "__dlpack__") or isinstance(given, range)):
        # Whatever else gives values one by one, a generator for instance.
        yield from _of_list(list(given), "row ids")
        return
    values = _ids(
        given if hasattr(given, "__array__") or isinstance(given, range) else np.from_dlpack(given), "row ids"
    )
    if values.ndim not in (1, 2):
        raise ArgumentError(f"row ids must have one dimension or two, got {values.ndim}")
    values = values.reshape(-1)
    for first in range(0, len(values), _BLOCK_IDS):
        yield IdBlock(values[first : first + _BLOCK_IDS])


def _of_list(
    given: Sequence[Any], what: str, numbers: Sequence[int] | None = None, file: str = ""
) -> Iterator[IdBlock]:
    flat: list[Any] = []
    places: list[int] = []
    for index, value in enumerate(given):
        values = value if isinstance(value, (list, tuple)) else [value]
        for single in values:
            if isinstance(single, (list, tuple)):
                raise ArgumentError(f"{what} are lists of lists at most")
            flat.append(single)
            places.append(index if numbers is None else numbers[index])
    valid = np.array([value is not None for value in flat], dtype=bool)
    odd = next((i for i, v in enumerate(flat) if v is not None and not _is_integer(v)), None)
    if odd is not None:
        where = f"{file} {places[odd]}: " if file else f"{what}, position {odd}: "
        raise RowIdTypeError(f"{where}{flat[odd]!r:.60} is no row id; row ids are integers")
    ids = _ids([0 if value is None else int(value) for value in flat], f"{file} {places[0]}" if file else what)
    found = np.array(places, dtype=np.int64) if file else None
    yield IdBlock(ids, None if valid.all() else valid, found, file)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _ids(values: Any, what: str) -> NDArray[np.int64]:
    """As int64, never rounded or wrapped."""
    try:
        return integers(values, what)
    except TokenIdError as error:
        # It speaks of tokens.
        kind = RowIdTypeError if isinstance(error, TypeError) else RowIdError
        text = str(error).replace("token id", "row id").replace("every vocabulary", "every table")
        raise kind(text.replace("tokens are", "row ids are")) from None


def _of_arrow(array: Any, what: str, first: int | None, file: str = "") -> Iterator[IdBlock]:
    """A column of integers, or of lists of them; ``first``: rows of the file before."""
    import pyarrow as pa

    array = plain(array)
    rows = np.arange(len(array), dtype=np.int64)
    while is_list(array.type):
        import pyarrow.compute as pc

        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.repeat(rows, lengths)
        array = array.flatten()
    if not (pa.types.is_integer(array.type) or (pa.types.is_null(array.type))):
        raise RowIdTypeError(f"{what}: {array.type} are no row ids; row ids are integers")
    valid = None
    if array.null_count:
        import pyarrow.compute as pc

        valid = ~np.asarray(array.is_null())
        if pa.types.is_null(array.type):
            array = pa.nulls(len(array), pa.int64())
        array = pc.fill_null(array, 0)
    ids = _ids(array.to_numpy(zero_copy_only=False), what)
    yield IdBlock(ids, valid, None if first is None else rows + first + 1, file)


def ids_of_file(path: str | os.PathLike[str], column: str | None = None) -> Iterator[IdBlock]:
    """The row ids of a file, by its name's ending.

    Args:
        path: A file with one of the endings in ``data_files.KINDS``.
        column: The column, array, tensor or member; by default the only one of integers or lists of them.

    Raises:
        RowIdError, RowIdTypeError: If an id is no integer of 64 bits.
        ArgumentError: If the file cannot be read or is damaged.
    """
    name = os.fspath(path)
    kind = kind_of(name, "row ids")
    if column is not None and kind in ("npy", "txt"):
        raise ArgumentError(f"'{name}' has no columns; leave '{column}' out")
    file = f"'{name}', {'line' if kind in ('txt', 'jsonl', 'csv') else 'row'}"
    with named_errors(name):
        if kind in ("parquet", "arrow"):
            chosen, batches = arrow_batches(name, kind, lambda schema: _column(schema, column, name))
            with closing(batches):  # type: ignore[type-var]
                for array, first in batches:
                    yield from _of_arrow(array, f"'{name}', column '{chosen}'", first, file)
        elif kind in ("npy", "npz", "safetensors"):
            yield from _of_matrix(name, kind, column, file)
        elif kind == "txt":
            yield from _of_text(name, file)
        else:
            cells = csv_cells(name, column) if kind == "csv" else json_values(name, column, _usable)
            yield from _of_cells(cells, kind == "csv", file)


def _usable(member: object) -> bool:
    return isinstance(member, list) or _is_integer(member)


def _column(schema: pa.Schema, column: str | None, name: str) -> str:
    import pyarrow as pa

    def is_ids(type_: pa.DataType) -> bool:
        type_ = plain_type(type_)
        while is_list(type_):
            type_ = type_.value_type
        return bool(pa.types.is_integer(type_))

    shown = ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
    if column is None:
        found = [field.name for field in schema if is_ids(field.type)]
        if len(found) == 1:
            return str(found[0])
        several = f"several columns of integers ({', '.join(found)}); name one with --column (column=)"
        raise ArgumentError(f"'{name}' has {several if found else 'no column of integers'}; its columns: {shown}")
    if schema.names.count(column) != 1:
        raise ArgumentError(
            f"'{name}' has {'no' if column not in schema.names else 'more than one'} column '{column}'; its columns: "
            f"{shown}"
        )
    if not is_ids(schema.field(column).type):
        raise ArgumentError(f"column '{column}' of '{name}' is {schema.field(column).type}, not row ids")
    return column


def _of_matrix(name: str, kind: str, column: str | None, file: str) -> Iterator[IdBlock]:
    with open_matrix(name, kind, column) as matrix:
        if len(matrix.shape) > 2:
            raise ArgumentError(f"{matrix.label} must have one dimension or two, got {len(matrix.shape)}")
        first = 0
        for block in matrix.blocks(_BLOCK_IDS):
            ids = _ids(block, matrix.label).reshape(-1)
            rows = np.repeat(np.arange(first, first + len(block), dtype=np.int64) + 1, ids.size // max(1, len(block)))
            yield IdBlock(ids, None, rows, file)
            first += len(block)


def _of_cells(cells: Iterable[Cell], texts: bool, file: str) -> Iterator[IdBlock]:
    values: list[Any] = []
    numbers: list[int] = []
    for line, value in cells:
        if texts:
            try:
                value = decimal_words(value) if value.strip() else None
            except ValueError as error:
                raise RowIdTypeError(f"{file} {line}: {error}") from None
        elif not (value is None or _usable(value)):
            raise RowIdTypeError(f"{file} {line}: {value!r:.60} is no row id; row ids are integers")
        values.append(value)
        numbers.append(line)
        if len(values) >= _BLOCK_IDS // 16:
            yield from _of_list(values, "row ids", numbers, file)
            values, numbers = [], []
    if values:
        yield from _of_list(values, "row ids", numbers, file)


def _of_text(name: str, file: str) -> Iterator[IdBlock]:
    """Decimal ids with white space between them."""
    line = 1
    for block in text_blocks(name):
        ids: list[int] = []
        numbers: list[int] = []
        for index, part in enumerate(block.split(b"\n")):
            for word in part.split():
                text = word[:40].decode("utf-8", "replace")
                if not word.removeprefix(b"-").isdigit():
                    raise RowIdError(f"{file} {line + index}: '{text}' is no decimal row id")
                digits = word.removeprefix(b"-").lstrip(b"0")
                # More digits would take Python long to read, too.
                if len(digits) > _MOST_DIGITS or int(digits or b"0") >= _BEYOND:
                    raise RowIdError(f"{file} {line + index}: row id {text} is beyond every table")
                ids.append(int(digits or b"0") * (-1 if word.startswith(b"-") else 1))
                numbers.append(line + index)
        if ids:
            yield IdBlock(_ids(ids, file), None, np.array(numbers, np.int64), file)
        line += block.count(b"\n")
