"""Token sequences of every form become the same batches, bounded and with the right history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import refuses
from hypothesis import given
from hypothesis import strategies as st

from engramsql import corpus, corpus_files
from engramsql.corpus import Batch, batches, pieces_of
from engramsql.data_files import texts

SEQUENCES = [[5, 6, 7], [], [248319], [0, 0, 1, 2]]


def sequences_of(found: Iterator[Batch], history_len: int) -> list[list[int]]:
    """The sequences of batches, joined where one goes on with another; histories are checked."""
    sequences: list[list[int]] = []
    for batch in found:
        assert 0 < len(batch.tokens) <= corpus.BATCH_TOKENS
        assert batch.tokens.dtype == np.int64
        assert batch.starts[0] == 0
        assert batch.starts == sorted(set(batch.starts))
        if len(batch.history):
            assert batch.history.tolist() == sequences[-1][-history_len:]
        ends = [*batch.starts[1:], len(batch.tokens)]
        for number, (start, end) in enumerate(zip(batch.starts, ends, strict=True)):
            tokens = batch.tokens[start:end].tolist()
            if number == 0 and len(batch.history):
                sequences[-1] += tokens
            else:
                sequences.append(tokens)
    return sequences


def read(source: object, column: str | None = None) -> list[list[int]]:
    return sequences_of(batches(pieces_of(source, column), 2), 2)


def lists() -> pa.Array:
    return pa.array(SEQUENCES, pa.list_(pa.int32()))


@pytest.mark.parametrize(
    "source",
    [
        SEQUENCES,
        tuple(SEQUENCES),
        iter(SEQUENCES),
        [np.array(s, np.uint16 if s != [248319] else np.uint32) for s in SEQUENCES],
        np.array([np.array(s, np.int64) for s in SEQUENCES], dtype=object),
        lists(),
        lists().cast(pa.large_list(pa.int64())),
        pa.array([None, *SEQUENCES], pa.list_(pa.int32())).slice(1),
        pa.array([*SEQUENCES, None], pa.list_(pa.uint64())),
        pa.chunked_array([lists().slice(0, 1), lists().slice(1)]),
        pa.table({"id": [1, 2, 3, 4], "tokens": lists()}),
        pa.RecordBatch.from_pydict({"tokens": lists()}),
        pa.RecordBatchReader.from_batches(
            pa.schema({"tokens": lists().type}), pa.table({"tokens": lists()}).to_batches(max_chunksize=2)
        ),
    ],
)
def test_many_sequences(source: object) -> None:
    assert read(source) == [s for s in SEQUENCES if s]


@pytest.mark.parametrize(
    "source",
    [
        [7, 8, 9],
        (7, 8, 9),
        range(7, 10),
        np.array([7, 8, 9], np.int16),
        np.array([0, 7, 0, 8, 0, 9])[1::2],
        pa.array([7, 8, 9], pa.int8()),
        pa.chunked_array([[7], [8, 9]]),
        np.array([[7, 8, 9]]),
    ],
)
def test_one_sequence(source: object) -> None:
    assert read(source) == [[7, 8, 9]]


@pytest.mark.parametrize(
    "source", [[], [[]], np.empty(0), np.empty((0, 4), np.int64), pa.array([], pa.list_(pa.int8()))]
)
def test_nothing(source: object) -> None:
    assert read(source) == []


def test_a_matrix_is_a_sequence_per_row() -> None:
    assert read(np.arange(6).reshape(2, 3)) == [[0, 1, 2], [3, 4, 5]]
    assert read(np.arange(6).reshape(3, 2).T) == [[0, 2, 4], [1, 3, 5]]


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.parquet": lambda path: pq.write_table(pa.table({"n": [1, 2, 3, 4], "tokens": lists()}), path, row_group_size=2),
    "a.arrow": lambda path: write_ipc(path, pa.ipc.new_file),
    "a.ipc": lambda path: write_ipc(path, pa.ipc.new_stream),
    "a.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, SEQUENCES)) + "\n"),
    "b.jsonl": lambda path: path.write_text("".join(f'{{"id": 1, "tokens": {s}}}\n' for s in SEQUENCES)),
    "a.txt": lambda path: path.write_text("\r\n".join(" ".join(map(str, s)) for s in SEQUENCES)),
    "b.TXT": lambda path: path.write_text("5\t6  7 \n\n248319\n0 0 1 2\n\n"),
}


def write_ipc(path: Path, new: Callable[..., Any]) -> None:
    table = pa.table({"tokens": lists()})
    with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


@pytest.mark.parametrize("name", WRITERS)
def test_files(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert read(tmp_path / name) == [s for s in SEQUENCES if s]
    assert read([tmp_path / name, str(tmp_path / name)]) == 2 * [s for s in SEQUENCES if s]


def test_array_files(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.arange(5, dtype=np.uint32))
    assert read(tmp_path / "one.npy") == [[0, 1, 2, 3, 4]]
    np.save(tmp_path / "two.npy", np.arange(6).reshape(2, 3))
    assert read(tmp_path / "two.npy") == [[0, 1, 2], [3, 4, 5]]


@given(
    st.lists(st.lists(st.integers(0, 99), max_size=30), max_size=12),
    st.integers(1, 9),
    st.integers(0, 3),
    st.data(),
)
def test_batches_are_bounded_and_know_their_history(
    sequences: list[list[int]], size: int, history_len: int, data: st.DataObject
) -> None:
    """Every way to cut a corpus gives the corpus again."""
    form = data.draw(st.sampled_from(["lists", "arrow", "text"]))
    expected = [s for s in sequences if s]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BATCH_TOKENS", size)
        patch.setattr(corpus_files, "BATCH_TOKENS", size)
        if form == "lists":
            pieces = pieces_of(iter(sequences))
        elif form == "arrow":
            pieces = pieces_of(pa.array(sequences, pa.list_(pa.int64())))
        else:
            pieces = text_pieces(
                "\n".join(" ".join(map(str, s)) for s in sequences), patch, data.draw(st.integers(3, 9))
            )
        found = list(batches(pieces, history_len))
        assert all(len(batch.tokens) <= size for batch in found)
        if history_len:
            assert sequences_of(iter(found), history_len) == expected
        assert [t for batch in found for t in batch.tokens.tolist()] == [t for s in expected for t in s]


def text_pieces(text: str, patch: pytest.MonkeyPatch, block: int) -> Iterator[corpus.Piece]:
    import tempfile

    patch.setattr(texts, "_BLOCK_BYTES", block)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return iter(list(pieces_of(file.name)))


def test_a_long_sequence_is_cut_everywhere_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BATCH_TOKENS", 1000)
    tokens = np.random.default_rng(0).integers(0, 1 << 20, 12_345)
    np.save(tmp_path / "a.npy", tokens)
    (tmp_path / "a.txt").write_text(" ".join(map(str, tokens.tolist())))
    for source in (tokens, tokens.tolist(), pa.array(tokens), tmp_path / "a.npy", tmp_path / "a.txt"):
        assert read(source) == [tokens.tolist()]


@pytest.mark.parametrize(
    "source, fragments",
    [
        ([1, 2.5], ["2.5", "not an integer"]),
        ([[1], [2.5]], ["sequence 1", "2.5"]),
        ([1, True], ["truth value"]),
        (["a"], ["'a' does not exist"]),
        (__file__, ["ends with one of", ".parquet"]),
        ([[1], 2], ["sequence 1", "int"]),
        ([1, [2]], ["inhomogeneous"]),
        (np.array([1.0, 2.0]), ["1.0", "not an integer"]),
        (np.array([1, 2**63], np.uint64), [2**63, "beyond"]),
        ([1, 2**70], [2**70, "beyond"]),
        (np.zeros((2, 2, 2), np.int64), ["dimension", "3"]),
        (np.ma.masked_array([1, 2], [False, True]), ["masked"]),
        (pa.array([[1, None]]), ["NULL"]),
        (pa.array([1, None]), ["NULL"]),
        (pa.array([[1.5]]), ["1.5", "not an integer"]),
        (pa.table({"a": [1]}), ["no column of integer lists", "a (int64)"]),
        (pa.table({"a": [[1]], "b": [[1]]}), ["a, b", "name one"]),
        ({1: 2}, ["dict"]),
        (b"12", ["bytes"]),
        (3, ["int"]),
        ("x.csv", ["'x.csv' does not exist"]),
        ("missing.npy", ["'missing.npy' does not exist"]),
    ],
)
def test_what_is_no_corpus_is_refused(source: object, fragments: list[object]) -> None:
    refuses(lambda: read(source), *fragments)


@pytest.mark.parametrize(
    "name, content, column, fragments",
    [
        ("a.txt", "1 2\n3 x 4", None, ["a.txt", "line 2", "'x'"]),
        ("a.txt", "1 -2", None, ["line 1", "'-2'"]),
        ("a.txt", "1_0", None, ["line 1", "'1_0'"]),
        ("a.txt", "1", "c", ["no columns", "c"]),
        ("a.jsonl", "[1, 2]\n[1,", None, ["line 2", "no JSON"]),
        ("a.jsonl", "[1, 2.0]", None, ["line 1", "2.0"]),
        ("a.jsonl", "[true]", None, ["line 1", "True"]),
        ("a.jsonl", "3", None, ["line 1", "no list"]),
        ("a.jsonl", '{"a": [1], "b": [2]}', None, ["line 1", "2 members", "a, b"]),
        ("a.jsonl", '{"a": [1]}', "b", ["line 1", "'b'", "a"]),
        ("a.jsonl", "[1]", "b", ["line 1", "'b'"]),
        ("a.parquet", "no parquet", None, ["a.parquet"]),
        ("a.arrow", "no arrow", None, ["a.arrow"]),
        ("a.npy", "no array", None, ["a.npy"]),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(
    tmp_path: Path, name: str, content: str, column: str | None, fragments: list[object]
) -> None:
    (tmp_path / name).write_text(content)
    message = refuses(lambda: read(tmp_path / name, column), *fragments)
    assert "\n" not in message


def test_a_column_is_chosen_by_name(tmp_path: Path) -> None:
    table = pa.table({"a": [[1]], "b": [[2]], "c": [3]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read(table, "b") == read(tmp_path / "t.parquet", "b") == [[2]]
    refuses(lambda: read(table, "c"), "'c'", "int64")
    refuses(lambda: read(tmp_path / "t.parquet", "d"), "'d'", "t.parquet")
    refuses(lambda: read([[1]], "d"), "'d'", "list")


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """A mapped array is converted batch by batch."""
    import tracemalloc

    np.save(tmp_path / "a.npy", np.zeros(40_000_000, np.int16))
    tracemalloc.start()
    try:
        tokens = sum(len(batch.tokens) for batch in batches(pieces_of(tmp_path / "a.npy"), 2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tokens == 40_000_000
    # All of them as int64 would be 320 MB.
    assert peak < 6 * 8 * corpus.BATCH_TOKENS
