"""e_t of a corpus: a record per token, or one per sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engramsql.corpus import Piece, within
from engramsql.errors import ArgumentError, TokenIdError
from engramsql.export.files import source
from engramsql.export.files.identity import readable, table_identity
from engramsql.export.files.source import Source, Task, chosen, rows_of_batch, vector_columns
from engramsql.export.files.stretches import Stretch, checked, stretches, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.engine import Spec, Table
    from engramsql.export.files.values import Values, ValuesName

__all__ = ["MOST_RECORD_BYTES", "token_source"]

MOST_RECORD_BYTES = 96 << 20
"""Bytes of the vectors of one sequence in one record, which lie in memory together."""
# Of a token beside its vectors: its id, its sequence and its place, and what they are computed from.
_TOKEN_BYTES = 32
# Sequences that are gathered into a batch at most: each has arrays of its own meanwhile, and may have one token.
_MOST_SEQUENCES = 1 << 13


def token_source(
    table: Table,
    pieces: Callable[[], Iterable[Piece]],
    origin: object,
    *,
    columns: Sequence[str] | None,
    values: ValuesName | None,
    rounded: bool,
    per: str,
    history: NDArray[np.int64],
    files: Sequence[str],
    total: int,
    views: bool,
    interrupt: Callable[[], None],
    most_bytes: int = MOST_RECORD_BYTES,
) -> Source:
    """e_t of every token of a corpus.

    Args:
        table: A table with a spec.
        pieces: Makes the corpus anew.
        origin: What tells the corpus from others without reading it, or None.
        columns: Columns, in order.
        values: Type of the values.
        rounded: Whether float16 may round.
        per: ``"token"`` or ``"sequence"``: what a record is.
        history: Tokens before every sequence, newest last.
        files: The files of the corpus; records name theirs if there are several.
        total: Tokens of the corpus, or 0.
        views: Whether views of the table may be asked for its tokens.
        interrupt: Ends the query that the corpus is the result of.
        most_bytes: Bytes of the vectors of one sequence at most, as far as its format bounds them.

    Raises:
        ArgumentError: If a column is not known.
        SpecError, FormatError: If the table has no spec, or no value format.
    """
    spec = table.spec
    if spec is None:
        from engramsql.errors import SpecError

        raise SpecError(
            f"table '{table.name}' has no hash spec, so tokens have no row ids in it; register it with a spec, or "
            "export the rows of ids (--ids, ids=)"
        )
    if per not in ("token", "sequence"):
        raise ArgumentError(f"per must be 'token' or 'sequence', got '{per}'")
    small = ["file", "sequence", "token", "token_id"] if per == "token" else ["file", "sequence", "tokens"]
    vector = "record" if values == "row" else "e_t"
    usual = [*(small if len(files) > 1 else small[1:]), vector]
    names = chosen(
        columns, usual, [*(small if files else small[1:]), "e_t", "record"], f"tokens of table '{table.name}'"
    )
    vectors = vector_columns(table, names, "e_t", "record", values, rounded, spec.heads)
    given = history[-spec.history_len :] if spec.history_len else history[:0]
    _check_history(spec, history)
    e_t = _Reader(table, spec, given, views)
    build: _PerToken | _PerSequence
    if per == "token":
        build = _PerToken(names, vectors, e_t, _Files(files))
    else:
        build = _PerSequence(names, vectors, e_t, _Files(files), min(most_bytes, MOST_RECORD_BYTES))

    def tasks(first: int, rows_per_file: int) -> Iterator[Task]:
        return build.tasks(checked(within(pieces(), spec.vocab_size), spec.vocab_size), first, rows_per_file)

    identity: dict[str, Any] = {
        "table": table_identity(table),
        "tokens": origin,
        "columns": names,
        "values": values or "float32",
        "round": rounded,
        "per": per,
        "history": history.tolist(),
    }
    return Source(
        kind="tokens",
        schema=build.schema,
        tasks=tasks,
        total=total,
        identity=identity,
        interrupt=interrupt,
        resumable=origin is not None,
    )


def _check_history(spec: Spec, history: NDArray[np.int64]) -> None:
    wrong = (history < 0) | (history >= spec.vocab_size)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise TokenIdError(
            f"history: token id {history[at]} at position {at} is outside the vocabulary (0 to {spec.vocab_size - 1})"
        )


class _Reader:
    """Tokens to vectors: hashing, gathering and decoding."""

    def __init__(self, table: Table, spec: Spec, history: NDArray[np.int64], views: bool) -> None:
        self.table, self.spec, self.history, self._views = table, spec, history, views

    def read(self, stretch: Stretch, vectors: list[Values], memory: NDArray[np.uint8]) -> list[pa.Array]:
        """The vectors of each token in ``memory``, one array for each kind."""
        count = len(stretch.tokens)
        arrays = []
        used = 0
        ids: NDArray[np.int64] | None = None
        for vector in vectors:
            out = memory[used : used + count * vector.vector_bytes]
            if self._views and vector.name in ("float32", "bfloat16"):
                self._through_views(stretch, vector, out)
                arrays.append(vector.array(out, count, None))
            else:
                if ids is None:
                    ids = self._rowids(stretch)
                arrays.append(vector.read(ids, memory[used:]))
            used += -(-count * vector.vector_bytes // 64) * 64
        return arrays

    def _rowids(self, stretch: Stretch) -> NDArray[np.int64]:
        tokens, starts = stretch.tokens, stretch.starts
        boundaries = [*starts.tolist(), len(tokens)]
        if len(self.history) == 0 and len(stretch.tail) == 0:
            return self.spec.rowids_packed(tokens, boundaries)
        others = len(starts) - 1
        history = np.concatenate([stretch.tail, np.tile(self.history, others)])
        first = len(stretch.tail)
        ends = first + len(self.history) * np.arange(others + 1, dtype=np.int64)
        return self.spec.rowids_packed(tokens, boundaries, history, [0, *ends.tolist()])

    def _through_views(self, stretch: Stretch, vector: Values, out: NDArray[np.uint8]) -> None:
        """Sequence by sequence, as views of the table are asked."""
        dtype = np.float32 if vector.name == "float32" else np.uint16
        to = out.view(dtype).reshape(len(stretch.tokens), vector.width)
        ends = [*stretch.starts[1:].tolist(), len(stretch.tokens)]
        for index, (begin, end) in enumerate(zip(stretch.starts.tolist(), ends, strict=True)):
            history = stretch.tail if index == 0 else self.history
            self.table.e_t(stretch.tokens[begin:end], history, out=to[begin:end], dtype=vector.name)  # type: ignore[arg-type]


# A name for each file, and not one for each record.
_FILE = pa.dictionary(pa.int32(), pa.string())


class _Files:
    """The names of the files of a corpus as a column: the same dictionary for every batch, as IPC files demand."""

    def __init__(self, files: Sequence[str]) -> None:
        # A file that is given twice has one name.
        names = list(dict.fromkeys(files))
        self._names = pa.array([readable(name) for name in names], pa.string())
        self._numbers = {name: number for number, name in enumerate(names)}

    def column(self, file: str | None, count: int) -> pa.Array:
        """``count`` times the name of a file."""
        indices = np.full(count, self._numbers[file or ""], np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(indices), self._names)


class _PerToken:
    """A record per token."""

    def __init__(self, names: list[str], vectors: dict[str, Values], reader: _Reader, files: _Files) -> None:
        self._names, self._vectors, self._reader, self._files = names, vectors, reader, files
        self.schema = pa.schema(
            [
                pa.field(name, vectors[name].type, metadata=vectors[name].field_metadata)
                if name in vectors
                else pa.field(name, _FILE if name == "file" else pa.int64())
                for name in names
            ]
        )
        self._bytes = sum(vector.vector_bytes for vector in vectors.values())
        widest = max((vector.width for vector in vectors.values()), default=1)
        self._step = rows_of_batch(self._bytes + _TOKEN_BYTES, widest)

    def tasks(self, pieces: Iterable[Piece], first: int, rows_per_file: int) -> Iterator[Task]:
        """The batches from token ``first`` of the corpus on."""
        spec, given = self._reader.spec, self._reader.history
        done = 0
        for stretch in stretches(pieces, self._step, spec.history_len, given, first, rows_per_file):
            done += len(stretch.tokens)
            yield self._task(stretch, first + done)

    def _task(self, stretch: Stretch, done: int) -> Task:
        count = len(stretch.tokens)

        def compute(memory: NDArray[np.uint8]) -> pa.RecordBatch:
            kinds = [self._vectors[name] for name in self._names if name in self._vectors]
            found = iter(self._reader.read(stretch, kinds, memory))
            lengths = np.diff(np.append(stretch.starts, count))
            arrays = []
            for name in self._names:
                if name in self._vectors:
                    arrays.append(next(found))
                elif name == "token_id":
                    arrays.append(pa.array(stretch.tokens))
                elif name == "sequence":
                    arrays.append(pa.array(np.repeat(stretch.numbers, lengths)))
                elif name == "token":
                    position = np.arange(count, dtype=np.int64) - np.repeat(stretch.starts, lengths)
                    position[: lengths[0]] += stretch.before
                    arrays.append(pa.array(position))
                else:
                    arrays.append(self._files.column(stretch.file, count))
            return pa.record_batch(arrays, schema=self.schema)

        return Task(count * (self._bytes + _TOKEN_BYTES) + 64 * len(self._vectors), compute, done)


class _PerSequence:
    """A record per sequence: its tokens, and a list of their vectors."""

    def __init__(
        self, names: list[str], vectors: dict[str, Values], reader: _Reader, files: _Files, most_bytes: int
    ) -> None:
        self._most_bytes = most_bytes
        self._names, self._vectors, self._reader, self._files = names, vectors, reader, files
        types = {"file": _FILE, "sequence": pa.int64(), "tokens": pa.list_(pa.int64())}
        self.schema = pa.schema(
            [
                pa.field(name, pa.list_(pa.field("item", vectors[name].type)), metadata=vectors[name].field_metadata)
                if name in vectors
                else pa.field(name, types[name])
                for name in names
            ]
        )
        self._bytes = sum(vector.vector_bytes for vector in vectors.values())
        self._width = max((vector.width for vector in vectors.values()), default=1)

    def tasks(self, pieces: Iterable[Piece], first: int, rows_per_file: int) -> Iterator[Task]:
        """The batches from sequence ``first`` of the corpus on."""
        most = max(1, min(self._most_bytes // max(self._bytes, _TOKEN_BYTES), source.MOST_VALUES // self._width))
        usual = rows_of_batch(self._bytes + _TOKEN_BYTES, self._width)
        gathered: list[Stretch] = []
        count = done = 0
        for number, sequence in enumerate(whole(pieces, most, self._refuse)):
            if number < first:
                continue
            more = count + len(sequence.tokens)
            # A batch has sequences of one file, and goes into one file.
            full = more > usual or len(gathered) >= _MOST_SEQUENCES
            if gathered and (full or gathered[0].file != sequence.file or number % rows_per_file == 0):
                done += count
                yield self._task(gathered, done)
                gathered, count = [], 0
            gathered.append(sequence)
            count += len(sequence.tokens)
        if gathered:
            yield self._task(gathered, done + count)

    def _refuse(self, what: str, most: int) -> ArgumentError:
        return ArgumentError(
            f"{what} has more than {most} tokens, whose vectors of {self._bytes} bytes do not fit into one record of "
            f"at most {self._most_bytes} bytes; export a record per token (--per token), smaller values, or as arrow"
        )

    def _task(self, sequences: list[Stretch], done: int) -> Task:
        lengths = [len(sequence.tokens) for sequence in sequences]
        tokens = np.concatenate([sequence.tokens for sequence in sequences])
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        numbers = np.concatenate([sequence.numbers for sequence in sequences])
        stretch = Stretch(tokens, starts[:-1], numbers, 0, self._reader.history, sequences[0].file)

        def compute(memory: NDArray[np.uint8]) -> pa.RecordBatch:
            kinds = [self._vectors[name] for name in self._names if name in self._vectors]
            found = iter(self._reader.read(stretch, kinds, memory))
            offsets = pa.array(starts.astype(np.int32))
            arrays = []
            for position, name in enumerate(self._names):
                if name in self._vectors:
                    type_ = self.schema.field(position).type
                    arrays.append(pa.ListArray.from_arrays(offsets, next(found), type=type_))
                elif name == "tokens":
                    arrays.append(pa.ListArray.from_arrays(offsets, pa.array(tokens)))
                elif name == "sequence":
                    arrays.append(pa.array(numbers))
                else:
                    arrays.append(self._files.column(stretch.file, len(numbers)))
            return pa.record_batch(arrays, schema=self.schema)

        return Task(len(tokens) * (self._bytes + _TOKEN_BYTES) + 64 * len(self._vectors), compute, done)
