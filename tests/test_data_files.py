"""Files of tokens and ids that are odd, damaged, cut while they are read, or large: refused, or read as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import refuses, run_python

from engramsql.corpus import count_of, integers, pieces_of
from engramsql.data_files import columns
from engramsql.id_files import ids_of_file


def sequences(path: Path, column: str | None = None) -> list[list[int]]:
    """The sequences of a file, joined where a piece goes on with one."""
    count_of(path)
    found: list[list[int]] = []
    for piece in pieces_of(path, column):
        ends = [*piece.starts[1:].tolist(), len(piece.tokens)]
        for index, (begin, end) in enumerate(zip(piece.starts.tolist(), ends, strict=True)):
            tokens = piece.tokens[begin:end].tolist()
            if index == 0 and piece.continues:
                found[-1] += tokens
            else:
                found.append(tokens)
    return found


def ids(path: Path, column: str | None = None) -> list[int | None]:
    found: list[int | None] = []
    for block in ids_of_file(path, column):
        valid = [True] * len(block.ids) if block.valid is None else block.valid
        found += [i if known else None for i, known in zip(block.ids.tolist(), valid, strict=True)]
    return found


def refused_by_both(path: Path, *fragments: object) -> None:
    refuses(lambda: sequences(path), path.name, *fragments)
    refuses(lambda: ids(path), path.name, *fragments)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "tokens\n1 2\n3\n"),
        ("a.csv", "tokens\r\n1 2\r\n3\r\n"),
        ("a.txt", "1 2\n3\n"),
        ("a.txt", "1 2\r\n3\r\n"),
        ("a.txt", "1 2\n000000000000000000000000000000003"),
        ("a.jsonl", "[1, 2]\n[3]\n"),
    ],
)
def test_a_mark_that_says_utf8_is_no_part_of_the_text(tmp_path: Path, name: str, content: str) -> None:
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / name).write_bytes(mark + content.encode())
        assert sequences(tmp_path / name, "tokens" if name == "a.csv" else None) == [[1, 2], [3]]
        assert ids(tmp_path / name) == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "content", "fragments"),
    [
        # What a lenient reader would make one cell of.
        ("a.csv", 'tokens\n"1\n2\n3\n', ["line 2", "no CSV"]),
        ("a.csv", 'tokens\n"1"2\n', ["line 2", "no CSV"]),
        # The first id would be lost.
        ("a.csv", "1\n2\n3\n", ["begins with the value '1'", "--column 1"]),
        ("a.csv", '"[1, 2]"\n', ["begins with the value '[1, 2]'"]),
        ("a.csv", "tokens\n" + "9" * 5000, ["line 2", "5000 digits"]),
        # One of the two would be lost.
        ("a.jsonl", '{"tokens": [1], "tokens": [2]}\n', ["line 1", "'tokens' is there twice"]),
        ("a.jsonl", "[" + "9" * 5000 + "]\n", ["line 1", "thousands of digits"]),
        ("a.txt", "1 " + "9" * 6000 + " 2", ["line 1", "beyond every"]),
    ],
)
def test_what_would_be_lost_is_refused(tmp_path: Path, name: str, content: str, fragments: list[str]) -> None:
    (tmp_path / name).write_text(content)
    refused_by_both(tmp_path / name, *fragments)


def test_a_column_may_be_named_like_an_id(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0\n5\n6\n")
    assert ids(tmp_path / "a.csv", "0") == [5, 6]


def test_lines_that_end_with_carriage_returns_alone_are_not_one_sequence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1 2\r3 4\r")
    refuses(lambda: sequences(tmp_path / "a.txt"), "a.txt", "line 1", "carriage return")
    assert ids(tmp_path / "a.txt") == [1, 2, 3, 4]


def test_an_array_is_read_however_it_lies(tmp_path: Path) -> None:
    array = np.random.default_rng(1).integers(0, 1 << 20, (37, 11))
    for name, other in {
        "c": array,
        "fortran": np.asfortranarray(array),
        "big": array.astype(">i4"),
        "small": array.astype(np.uint32),
    }.items():
        np.save(tmp_path / f"{name}.npy", other)
        assert sequences(tmp_path / f"{name}.npy") == array.tolist()
        assert ids(tmp_path / f"{name}.npy") == array.reshape(-1).tolist()
    for empty in (np.zeros((0, 4), int), np.zeros((4, 0), int), np.asfortranarray(np.zeros((4, 0), int))):
        np.save(tmp_path / "empty.npy", empty)
        assert sequences(tmp_path / "empty.npy") == []
        assert ids(tmp_path / "empty.npy") == []


@pytest.mark.parametrize(
    ("array", "fragment"),
    [
        (np.array([5], "M8[ns]"), "datetime64[ns]"),
        (np.array([5], "m8[s]"), "timedelta64[s]"),
        (np.array([True]), "True"),
        (np.array([1.0]), "1.0"),
        (np.array(["5"]), "'5'"),
        (np.array([(1, 2)], [("a", "i4"), ("b", "i4")]), "(1, 2)"),
    ],
)
def test_what_is_no_integer_does_not_become_one(tmp_path: Path, array: Any, fragment: str) -> None:
    np.save(tmp_path / "a.npy", array)
    refused_by_both(tmp_path / "a.npy", fragment)
    np.savez(tmp_path / "a.npz", a=array)
    refuses(lambda: ids(tmp_path / "a.npz", "a"), fragment)
    refuses(lambda: integers(array, "tokens"), fragment)


@pytest.mark.parametrize(
    ("values", "fragment"),
    [
        ([True, 2], "truth value"),
        ([np.True_, 2], "truth value"),
        ([1, 2.5], "2.5 at position 1"),
        ([1, 2.0], "2.0 at position 1"),
        ([-1, 1 << 63], "9223372036854775808"),
        ([1 << 20000], "20001 bits"),
    ],
)
def test_numbers_that_numpy_would_change_are_refused(values: list[Any], fragment: str) -> None:
    refuses(lambda: integers(values, "tokens"), fragment)


def test_integers_of_different_kinds_are_exact() -> None:
    # NumPy makes floats of these, and a float has no 2^53 + 1.
    values = [np.uint64((1 << 53) + 1), np.int64(-1)]
    assert np.asarray(values).dtype == np.float64
    assert integers(values, "ids").tolist() == [(1 << 53) + 1, -1]


def test_a_file_that_is_another_than_its_name_says(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    os.rename(tmp_path / "a.npz", tmp_path / "a.npy")
    refused_by_both(tmp_path / "a.npy", "archive", ".npz")
    (tmp_path / "b.npy").write_text("version https://git-lfs.github.com/spec/v1\n")
    refused_by_both(tmp_path / "b.npy", "no NumPy array")


@pytest.mark.parametrize(
    "header",
    [
        {"a": 5},
        {"a": None},
        {"a": {"shape": [1]}},
        {"a": {"dtype": "I64", "shape": "ab", "data_offsets": [0, 8]}},
        {"a": {"dtype": "I64", "shape": [-1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "I64", "shape": [1.0], "data_offsets": [0, 8]}},
        {"a": {"dtype": "I64", "shape": [True], "data_offsets": [0, 8]}},
        {"a": {"dtype": ["I64"], "shape": [1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "I64", "shape": [1], "data_offsets": ["0", "8"]}},
        {"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8, 9]}},
        {"a": {"dtype": "I64", "shape": [1]}},
        {"a": {"dtype": "I64", "shape": [1 << 32, 1 << 32], "data_offsets": [0, 0]}},
        '{"a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]}, "a": {"dtype": "I8", "shape": [0]}}',
    ],
)
def test_a_header_that_describes_no_tensor_is_refused(tmp_path: Path, header: Any) -> None:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(64))
    refused_by_both(tmp_path / "a.safetensors", "'a'")


@pytest.mark.parametrize("type_", [pa.list_view(pa.int64()), pa.large_list_view(pa.int32()), pa.large_list(pa.int8())])
def test_views_of_lists_lose_nothing(tmp_path: Path, type_: pa.DataType) -> None:
    table = pa.table({"tokens": pa.array([[9], [1, 2], None, [], [3]], type_)})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table.slice(1))
    assert sequences(tmp_path / "a.arrow") == [[1, 2], [3]]
    assert ids(tmp_path / "a.arrow") == [1, 2, 3]


def test_encoded_columns_are_read_as_what_they_mean(tmp_path: Path) -> None:
    codes = pa.array([7, None, 7, 8], pa.int64()).dictionary_encode()
    runs = pa.RunEndEncodedArray.from_arrays([3, 4], [5, 6])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 2, 3], pa.int32()), codes.take(pa.array([0, 2, 3])))
    for name, array in {"codes": codes, "runs": runs, "lists": lists}.items():
        table = pa.table({"ids": array})
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", table.schema) as writer:
            writer.write_table(table)
    assert ids(tmp_path / "codes.arrow") == [7, None, 7, 8]
    assert ids(tmp_path / "runs.arrow") == [5, 5, 5, 6]
    assert ids(tmp_path / "lists.arrow") == [value for part in lists.to_pylist() if part for value in part]
    assert sequences(tmp_path / "lists.arrow") == [part for part in lists.to_pylist() if part]


def test_a_column_is_found_by_its_whole_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([{"b": [1]}]), "a.b": pa.array([[7]])}), tmp_path / "a.parquet")
    assert sequences(tmp_path / "a.parquet", "a.b") == [[7]]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_long_rows_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(columns, "_BATCH_VALUES", 100)
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, 1 << 20, length).tolist() for length in rng.integers(0, 60, 50)]
    table = pa.table({"tokens": pa.array([*rows, None], pa.list_(pa.int32()))})
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=20)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    assert max(len(piece.tokens) for piece in pieces_of(path)) < 500
    assert sequences(path) == [row for row in rows if row]
    numbers = [number for piece in pieces_of(path) for number in piece.numbers.tolist()]  # type: ignore[union-attr]
    assert numbers == [number for number, row in enumerate(rows, start=1) if row]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_that_would_fill_the_memory_is_refused(tmp_path: Path, name: str, monkeypatch: Any) -> None:
    from engramsql.data_files import texts

    monkeypatch.setattr(texts, "_MOST_LINE", 1000)
    row = json.dumps(list(range(200)))[:998]
    row = row[: row.rindex(",")] + "]"
    before, around = ("tokens\n[]\n", '"') if name == "a.csv" else ("[]\n[]\n", "")
    (tmp_path / name).write_text(f"{before}{around}{row}{around}\n")
    assert sequences(tmp_path / name) == [json.loads(row)]
    (tmp_path / name).write_text(f"{before}{around}{' ' * 1000}{row}{around}\n")
    refused_by_both(tmp_path / name, "line 3 is longer than 1000 bytes", ".npy")


CUT = """
    import sys
    from engramsql.corpus import pieces_of
    from engramsql import corpus
    from engramsql.errors import ArgumentError
    corpus.BATCH_TOKENS = 1 << 12
    pieces = iter(pieces_of(sys.argv[1], "a" if sys.argv[1].endswith(("z", "s")) else None))
    next(pieces)
    open(sys.argv[1], "r+b").truncate(4096)
    try:
        for piece in pieces:
            pass
    except ArgumentError as error:
        assert sys.argv[1] in str(error), error
        print("refused")
"""


def _npy(path: Path, array: Any) -> None:
    np.save(path, array)


def _safetensors(path: Path, array: Any) -> None:
    from safetensors.numpy import save_file

    save_file({"a": array}, path)


def _arrow(path: Path, array: Any) -> None:
    table = pa.table({"a": array.tolist()})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


@pytest.mark.parametrize(("ending", "write"), [("npy", _npy), ("safetensors", _safetensors), ("arrow", _arrow)])
def test_a_file_that_is_cut_meanwhile_is_an_error_and_no_crash(
    tmp_path: Path, ending: str, write: Callable[[Path, Any], None]
) -> None:
    """Mapped, it would end the process."""
    path = tmp_path / f"a.{ending}"
    write(path, np.random.default_rng(2).integers(0, 1 << 20, (20_000, 256)))
    done = run_python(CUT, args=[str(path)])
    assert done.stdout == "refused\n"
