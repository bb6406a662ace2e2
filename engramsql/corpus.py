"""Token sequences from wherever they lie, in batches of bounded size.

A corpus is one sequence or many; the n-grams of a token never reach over the beginning of its sequence. Whatever holds
it becomes batches of at most ``BATCH_TOKENS`` tokens: sequences packed one after the other, a long one cut, with the
tokens before the cut as history. Files are in ``corpus_files``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engramsql.data_files.columns import is_list, plain, plain_type
from engramsql.errors import ArgumentError, ArgumentTypeError, TokenIdError, TokenIdTypeError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = [
    "BATCH_SEQUENCES",
    "BATCH_TOKENS",
    "Batch",
    "Piece",
    "batches",
    "count_of",
    "integers",
    "list_column",
    "pieces_of",
    "pieces_of_lists",
    "within",
]

# Eight megabytes of ids; what is made of them takes heads times as much.
BATCH_TOKENS = 1 << 20
# Sequences gathered into a piece at most: each is an array of its own meanwhile, and may have one token.
BATCH_SEQUENCES = 1 << 16
_STREAM_ROWS = 2048
_TRUTHS = frozenset({bool, np.bool_})


class Piece(NamedTuple):
    """Tokens as they were found: sequences one after the other."""

    tokens: NDArray[np.int64]
    """All tokens, int64 [n]."""
    starts: NDArray[np.int64]
    """Where each sequence begins, ascending; the first is 0. No sequence is empty."""
    continues: bool
    """Whether the first of them is the rest of the sequence before."""
    numbers: NDArray[np.int64] | None = None
    """Line or row (1-based) of each sequence in its file, or its number among those in memory; NULLs count."""
    file: str = ""
    """That file and what the numbers count, as in ``'a.txt', line``; empty where there is no file."""


class Batch(NamedTuple):
    """What a view builder takes in one call."""

    tokens: NDArray[np.int64]
    """At most BATCH_TOKENS tokens, int64 [n]."""
    starts: list[int]
    """Where each sequence begins; the first is 0."""
    history: NDArray[np.int64]
    """Tokens before the first sequence, newest last: empty unless it was cut there."""


def batches(pieces: Iterable[Piece], history_len: int) -> Iterator[Batch]:
    """The pieces as batches.

    Args:
        pieces: Tokens in order.
        history_len: Tokens of history that matter to the spec.
    """
    tail = np.empty(0, np.int64)
    for tokens, starts, continues, *_ in chain.from_iterable(map(_cut, pieces)):
        if not continues:
            tail = tail[:0]
        yield Batch(tokens, starts.tolist(), tail)
        last = int(starts[-1])
        if last > 0:
            tail = tail[:0]
        if history_len:
            tail = np.concatenate([tail, tokens[last:][-history_len:]])[-history_len:]


def within(pieces: Iterable[Piece], vocab_size: int) -> Iterator[Piece]:
    """The pieces as they are; a token of a file that is outside the vocabulary is refused with its place there.

    Raises:
        TokenIdError: For the first such token, with file, line or row, and position (0-based).
    """
    before = 0
    for piece in pieces:
        tokens, starts, continues, numbers, file = piece
        if not continues:
            before = 0
        if file and numbers is not None and len(tokens) and (tokens.min() < 0 or tokens.max() >= vocab_size):
            at = int(np.argmax((tokens < 0) | (tokens >= vocab_size)))
            sequence = int(np.searchsorted(starts, at, side="right")) - 1
            position = at - int(starts[sequence]) + (before if sequence == 0 else 0)
            raise TokenIdError(
                f"{file} {numbers[sequence]}: token id {tokens[at]} at position {position} is outside the vocabulary "
                f"(0 to {vocab_size - 1})"
            )
        before = len(tokens) - int(starts[-1]) + (before if len(starts) == 1 else 0)
        yield piece


def _cut(piece: Piece) -> Iterator[Piece]:
    """A piece as pieces of at most BATCH_TOKENS tokens."""
    tokens, starts, continues, *_ = piece
    for begin in range(0, len(tokens), BATCH_TOKENS):
        end = min(begin + BATCH_TOKENS, len(tokens))
        first, last = np.searchsorted(starts, [begin, end])
        own = starts[first:last] - begin
        inside = len(own) == 0 or own[0] != 0
        yield Piece(
            tokens[begin:end],
            np.concatenate([[0], own]).astype(np.int64) if inside else own,
            inside or (begin == 0 and continues),
        )


def pieces_of(tokens: object, column: str | None = None) -> Iterator[Piece]:
    """A corpus in any of its forms.

    Args:
        tokens: One sequence (a list or an array of integers); many (a list, an iterable, a two-dimensional array, an
            Arrow list array, table or reader); a DuckDB relation or a DataFrame with a column of lists; a path; a list
            of paths.
        column: The list column of a table or file.

    Raises:
        TokenIdTypeError: If a token is no integer.
        ArgumentTypeError: If it is none of these.
        ArgumentError: If a column is missing or several could be meant, or a file cannot be read.
    """
    if isinstance(tokens, (str, os.PathLike)):
        from engramsql.corpus_files import pieces_of_file

        return pieces_of_file(tokens, column)
    if _is_arrow(tokens):
        return _of_arrow(tokens, column)
    if hasattr(tokens, "columns") and (hasattr(tokens, "__arrow_c_stream__") or hasattr(tokens, "__dataframe__")):
        return _of_frame(tokens, column)
    if isinstance(tokens, (list, tuple)) and tokens and isinstance(tokens[0], (str, os.PathLike)):
        return chain.from_iterable(pieces_of(path, column) for path in tokens)
    if column is not None:
        raise ArgumentError(f"column '{column}' belongs to a table or a file of one, got {type(tokens).__name__}")
    if isinstance(tokens, (list, tuple, range)):
        # None is a NULL list, which says nothing.
        nested = _is_sequence(next((part for part in tokens if part is not None), None))
        return _of_sequences(tokens) if nested else _of_sequences([tokens])
    if hasattr(tokens, "__array__") or hasattr(tokens, "__dlpack__"):
        return _of_array(tokens)
    if isinstance(tokens, Iterable) and not isinstance(tokens, (bytes, bytearray, dict, set)):
        return _of_sequences(tokens)
    raise ArgumentTypeError(
        "tokens must be a sequence of integers, sequences, an Arrow list array, a relation or DataFrame with a column "
        f"of lists, or a path, got {type(tokens).__name__}"
    )


def count_of(tokens: object) -> int:
    """Tokens of a corpus, if that can be told without reading it; else 0."""
    if isinstance(tokens, (str, os.PathLike)):
        from engramsql.corpus_files import count_of_file

        return count_of_file(tokens)
    if isinstance(tokens, (list, tuple)) and tokens and isinstance(tokens[0], (str, os.PathLike)):
        counts = [count_of(path) for path in tokens]
        return sum(counts) if all(counts) else 0
    if isinstance(tokens, np.ndarray):
        return int(tokens.size) if tokens.dtype.kind in "iu" else 0
    return len(tokens) if isinstance(tokens, (list, tuple, range)) and tokens and not _is_sequence(tokens[0]) else 0


def _is_sequence(value: object) -> bool:
    return isinstance(value, (list, tuple, range)) or bool(getattr(value, "ndim", 0)) or _is_arrow(value)


def _of_frame(frame: Any, column: str | None) -> Iterator[Piece]:
    """A DuckDB relation, or a DataFrame of pandas or polars, as a stream of Arrow."""
    import pyarrow as pa

    if type(frame).__name__ == "DuckDBPyRelation":
        from engramsql.relation_rows import refuse_busy, rows_of

        refuse_busy(frame)
        # By itself it streams a million rows at a time, and documents may be long.
        with rows_of(frame, _STREAM_ROWS) as rows:
            name = list_column(rows.schema, column, "the table")
            yield from _of_chunks(batch.column(name) for batch in rows.batches)
        return
    if hasattr(frame, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(frame)
    else:  # pandas before 2.2
        reader = pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    # An error may keep it alive, and a connection could not be used as long as it has a result open.
    with closing(reader):
        yield from _of_arrow(reader, column)


def _of_array(array: Any) -> Iterator[Piece]:
    # A masked array stays one, and is refused.
    values = np.asanyarray(array) if hasattr(array, "__array__") else np.from_dlpack(array)
    if values.ndim == 1 and values.dtype == object and len(values) and _is_sequence(values[0]):
        yield from _of_sequences(values)
        return
    yield from pieces_of_matrix(values)


def pieces_of_matrix(values: NDArray[Any], what: str = "tokens") -> Iterator[Piece]:
    """A one-dimensional array as one sequence, a two-dimensional one as a sequence per row.

    It is converted batch by batch: the array may be a file that is mapped.
    """
    if values.ndim not in (1, 2):
        raise ArgumentError(f"{what} must have one dimension or two (a sequence per row), got {values.ndim}")
    if values.size == 0:
        return
    width = values.shape[-1]
    rows = values[None, :] if values.ndim == 1 else values
    step = max(1, BATCH_TOKENS // width)
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        for begin in range(0, width, BATCH_TOKENS) if len(block) == 1 else (0,):
            part = block[:, begin : begin + BATCH_TOKENS] if len(block) == 1 else block
            tokens = integers(part, what).reshape(-1)
            numbers = np.arange(first, first + len(block), dtype=np.int64) + 1
            yield Piece(tokens, np.arange(0, len(tokens), part.shape[1], dtype=np.int64), begin > 0, numbers)


def _of_sequences(sequences: Iterable[Any]) -> Iterator[Piece]:
    """Sequences one by one, gathered into pieces worth a call."""
    gathered: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    count = 0
    for number, sequence in enumerate(sequences):
        if sequence is None:
            continue  # as a NULL list in SQL: no tokens
        if not _is_sequence(sequence):
            raise ArgumentTypeError(
                f"sequence {number} is no list or array of integers but {type(sequence).__name__}; give one sequence "
                "of integers, or only sequences"
            )
        values = _flat(sequence, f"sequence {number}")
        if len(values):
            gathered.append(values)
            numbers.append(number + 1)
            count += len(values)
        if count >= BATCH_TOKENS or len(gathered) >= BATCH_SEQUENCES:
            yield joined(gathered, numbers)
            gathered, numbers, count = [], [], 0
    if gathered:
        yield joined(gathered, numbers)


def joined(sequences: Sequence[NDArray[np.int64]], numbers: Sequence[int] | None = None) -> Piece:
    """Sequences that are not empty as one piece; numbers: where in its file each is."""
    starts = np.cumsum([0, *map(len, sequences[:-1])], dtype=np.int64)
    found = None if numbers is None else np.array(numbers, dtype=np.int64)
    return Piece(np.concatenate(sequences), starts, continues=False, numbers=found)


def _flat(sequence: Any, what: str) -> NDArray[np.int64]:
    if _is_arrow(sequence):
        if sequence.null_count:
            raise TokenIdError(f"{what} has a NULL token; leave it out")
        sequence = plain(sequence).to_numpy(zero_copy_only=False)
    values = integers(sequence, what)
    if values.ndim != 1:
        raise ArgumentError(f"{what} must have one dimension, got {values.ndim}")
    return values


def integers(values: Any, what: str) -> NDArray[np.int64]:
    """Any integer array or list as int64, never rounded or wrapped.

    Raises:
        TokenIdTypeError: If a value is no integer, with the first such one.
        TokenIdError: If an integer is beyond 64 bits.
        ArgumentError: If lists differ in length.
    """
    if np.ma.is_masked(values):
        raise TokenIdError(f"{what}: some tokens are masked; leave them out")
    listed = isinstance(values, (list, tuple))
    if listed and not _TRUTHS.isdisjoint(map(type, values)):
        # NumPy would make ones of them.
        raise TokenIdTypeError(f"{what} has a truth value among its tokens; token ids are integers")
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"{what}: {error}") from None
    if array.size == 0:
        return array.astype(np.int64)
    kind = array.dtype.kind
    if kind == "i" or (kind == "u" and (array.dtype.itemsize < 8 or array.max() <= np.iinfo(np.int64).max)):
        return np.asarray(array, dtype=np.int64, order="C")
    if kind == "u":
        raise TokenIdError(f"{what}: token id {array.max()} is beyond every vocabulary")
    if kind in "mM":
        # As Python objects some of them are integers.
        raise TokenIdTypeError(f"{what}: {array.dtype} are times; token ids are integers")
    # NumPy makes floats of integers beside one with a fraction, or one beyond 64 bits.
    flat = list(values) if kind == "f" and listed and array.ndim == 1 else array.reshape(-1).tolist()
    position = next((i for i, value in enumerate(flat) if not isinstance(value, (int, np.integer))), -1)
    if position < 0:
        position = next((i for i, value in enumerate(flat) if isinstance(value, bool)), -1)
    if position >= 0:
        raise TokenIdTypeError(f"{what}: token id {flat[position]!r:.60} at position {position} is not an integer")
    huge = next((value for value in flat if not -(1 << 63) <= value < 1 << 63), None)
    if huge is not None:
        raise TokenIdError(f"{what}: token id {_shortened(huge)} is beyond every vocabulary")
    return np.array(flat, dtype=np.int64).reshape(array.shape)


def _shortened(number: int) -> str:
    """Its digits; of thousands of them Python refuses to write any."""
    return str(number) if number.bit_length() < 200 else f"of {number.bit_length()} bits"


def _is_arrow(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def _of_arrow(source: Any, column: str | None) -> Iterator[Piece]:
    import pyarrow as pa

    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        if column is not None:
            raise ArgumentError(f"column '{column}' belongs to a table, got one column already")
        chunks = source.chunks if isinstance(source, pa.ChunkedArray) else [source]
        if is_list(source.type):
            yield from _of_chunks(chunks)
            return
        for number, chunk in enumerate(chunks):
            values = _flat(chunk, "tokens")
            if len(values):
                yield Piece(values, np.zeros(1, np.int64), number > 0)
        return
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, (pa.Table, pa.RecordBatchReader)):
        raise ArgumentTypeError(f"tokens must be an Arrow array, table or reader, got {type(source).__name__}")
    name = list_column(source.schema, column, "the table")
    yield from _of_chunks(
        batch.column(name) for batch in (source.to_batches() if isinstance(source, pa.Table) else source)
    )


def _of_chunks(chunks: Iterable[pa.Array]) -> Iterator[Piece]:
    """The sequences of a column of lists, which counts its rows from one chunk to the next."""
    first = 0
    for chunk in chunks:
        yield from pieces_of_lists(chunk, first=first)
        first += len(chunk)


def list_column(schema: pa.Schema, column: str | None, what: str) -> str:
    """The column to read: ``column``, or the only one with lists.

    Raises:
        ArgumentError: If there is no such column, or more than one.
    """
    import pyarrow as pa

    lists = [
        field.name for field in schema if is_list(field.type) and pa.types.is_integer(plain_type(field.type).value_type)
    ]
    if column is None:
        if len(lists) == 1:
            return str(lists[0])
        several = f"has the columns of lists {', '.join(lists)}; name one with --column (column=)"
        found = several if lists else "has no column of integer lists"
        texts = [] if lists else [field.name for field in schema if _is_text(field.type)]
        hint = f" (the token ids of a text are engram_tokens('ple', {texts[0]}), in a query)" if texts else ""
        raise ArgumentError(f"{what} {found}; its columns: {', '.join(map(_shown, schema)) or 'none'}{hint}")
    if schema.names.count(column) != 1:
        found = "no" if column not in schema.names else "more than one"
        raise ArgumentError(f"{what} has {found} column '{column}'; its columns: {', '.join(map(_shown, schema))}")
    if column not in lists:
        raise ArgumentError(f"column '{column}' of {what} is {schema.field(column).type}, not lists of integers")
    return column


def _is_text(type_: pa.DataType) -> bool:
    import pyarrow as pa

    plain = plain_type(type_)
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def _shown(field: pa.Field) -> str:
    return f"{field.name} ({field.type})"


def pieces_of_lists(lists: pa.Array, what: str = "the column", first: int | None = None) -> Iterator[Piece]:
    """Rows of a list array, each a sequence; NULL rows are none.

    first: rows of the file before these, if it is one.

    Raises:
        TokenIdError: If a token is NULL.
    """
    import pyarrow.compute as pc

    lists = plain(lists)
    values = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.flatnonzero(lengths)
    lengths = lengths[rows]
    numbers = None if first is None else rows + first + 1
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        row = int(np.searchsorted(np.cumsum(lengths), at, side="right"))
        where = "" if numbers is None else f", row {numbers[row]}"
        raise TokenIdError(f"{what}{where}: a token is NULL; leave it out")
    tokens = integers(values.to_numpy(zero_copy_only=False), what)
    if len(lengths):
        starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
        yield Piece(tokens, starts, continues=False, numbers=numbers)
