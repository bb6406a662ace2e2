"""Row ids and keys from files of every kind: export, warm and views read the same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_data import GOLDEN
from helpers import refuses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program import run
from safetensors.numpy import save_file

import engramsql
from engramsql.data_files import texts
from engramsql.id_files import ids_of_file

IDS = [5, 1400, 0, 5, 77, 1407]
CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"


def files_of(directory: Path, ids: list[int]) -> dict[str, Path]:
    """The same ids in files of every kind, flat, and as lists of three."""
    three = [ids[first : first + 3] for first in range(0, len(ids), 3)]
    kinds = ("parquet", "arrow", "arrows", "npy", "npz", "safetensors", "csv", "jsonl", "txt")
    paths = {f"{kind}{form}": directory / f"{form or 'flat'}.{kind}" for kind in kinds for form in ("", "lists")}
    for form, column in (("", pa.array(ids, pa.int32())), ("lists", pa.array(three, pa.list_(pa.int64())))):
        table = pa.table({"rowid": column, "note": ["x"] * len(column)})
        pq.write_table(table, paths[f"parquet{form}"], row_group_size=2)
        with pa.ipc.new_file(paths[f"arrow{form}"], table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        with pa.ipc.new_stream(paths[f"arrows{form}"], table.schema) as writer:
            writer.write_table(table)
        array = np.array(ids, np.uint32).reshape((-1, 3) if form else -1)
        np.save(paths[f"npy{form}"], array)
        np.savez(paths[f"npz{form}"], rowid=array, weights=np.ones(2))
        save_file({"rowid": array, "weights": np.ones(2)}, paths[f"safetensors{form}"])
    paths["csv"].write_text("rowid\n" + "".join(f"{i}\n" for i in ids))
    paths["csvlists"].write_text("rowid\n" + "".join(f'"{json.dumps(row)}"\n' for row in three))
    paths["jsonl"].write_text("".join(f"{i}\n" for i in ids))
    paths["jsonllists"].write_text("".join(json.dumps({"rowid": row, "note": "x"}) + "\n" for row in three))
    paths["txt"].write_text("".join(f"{i}\n" for i in ids))
    paths["txtlists"].write_text("".join(" ".join(map(str, row)) + "\n" for row in three))
    return paths


def read(path: Path, column: str | None = None) -> list[int | None]:
    found: list[int | None] = []
    for ids, valid, *_ in ids_of_file(path, column):
        assert ids.dtype == np.int64
        found += [
            i if v else None for i, v in zip(ids.tolist(), [True] * len(ids) if valid is None else valid, strict=True)
        ]
    return found


def test_every_kind_of_file_has_the_same_ids(tmp_path: Path) -> None:
    for name, path in files_of(tmp_path, IDS).items():
        assert read(path) == IDS, name


def test_nulls_stay_nulls(tmp_path: Path) -> None:
    pq.write_table(pa.table({"rowid": pa.array([4, None, 6])}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"rowid": pa.array([[4], None, [None, 6]])}), tmp_path / "b.parquet")
    (tmp_path / "a.csv").write_text('rowid\n4\n""\n6\n')
    (tmp_path / "a.jsonl").write_text("4\nnull\n[6]\n")
    for name in ("a.parquet", "b.parquet", "a.csv", "a.jsonl"):
        assert read(tmp_path / name) == [4, None, 6], name


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 10**12), max_size=40), st.integers(16, 40), st.sampled_from(" \n\t"))
def test_text_is_read_in_blocks(tmp_path: Path, ids: list[int], block: int, space: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(space.join(map(str, ids)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_BLOCK_BYTES", block)
        assert read(path) == ids


@pytest.mark.parametrize(
    ("name", "content", "fragments"),
    [
        ("a.txt", "1 2\n3 x", ["a.txt", "line 2", "'x'"]),
        ("a.txt", "1\n1408", ["a.txt", "line 2", "row id 1408", "0 to 1407"]),
        ("a.txt", "1\n-1", ["a.txt", "line 2", "row id -1"]),
        ("a.txt", "99999999999999999999", ["line 1", "99999999999999999999"]),
        ("a.csv", "rowid\n1\n2.5\n", ["a.csv", "line 3", "2.5"]),
        ("a.csv", "rowid\n1\n5000\n", ["a.csv", "line 3", "row id 5000"]),
        ("a.csv", "a,b\n1,2\n", ["2 columns", "--column"]),
        ("a.jsonl", "1\n2.0\n", ["a.jsonl", "line 2", "2.0"]),
        ("a.jsonl", "true\n", ["line 1", "True"]),
        ("a.jsonl", '{"a": 1, "b": 2}\n', ["line 1", "2 members", "--column"]),
        ("a.parquet", {"a": [1.5]}, ["a.parquet", "no column of integers", "a (double)"]),
        ("a.parquet", {"a": [1], "b": [[2]]}, ["a, b", "--column"]),
        ("a.parquet", {"a": [1, 2, 1408]}, ["a.parquet", "row 3", "row id 1408"]),
        ("a.npy", np.array([1.5]), ["a.npy", "1.5"]),
        ("a.npy", np.array([[1, 2], [3, 1408]]), ["a.npy", "row 2", "row id 1408"]),
        ("a.npy", np.array([2**63], np.uint64), ["a.npy", "beyond every table"]),
        ("a.npy", np.ones((1, 1, 1), np.int64), ["one dimension or two"]),
        ("a.bin", "1", ["file of row ids ends with"]),
    ],
)  # fmt: skip
def test_errors_name_file_row_and_value(tmp_path: Path, name: str, content: Any, fragments: list[str]) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, dict):
        pq.write_table(pa.table(content), path)
    else:
        np.save(path, content)
    with engramsql.connect(CHECKPOINT) as db:
        message = refuses(lambda: db.export("ple", tmp_path / "out" / "e.arrow", ids=path), *fragments)
    assert "\n" not in message
    assert not list(tmp_path.glob("out/*"))


def test_exports_of_the_same_ids_are_the_same(tmp_path: Path) -> None:
    paths = files_of(tmp_path, IDS)
    with engramsql.connect(CHECKPOINT) as db:
        expected = db.table("ple").vectors(IDS)
        for name in ("parquetlists", "npy", "safetensors", "csv", "jsonllists", "txt"):
            db.export("ple", tmp_path / "e.npy", ids=paths[name], replace=True)
            assert np.load(tmp_path / "e.npy").tobytes() == expected.tobytes(), name
        db.export("ple", tmp_path / "e.npy", ids=[paths["txt"], paths["npy"]], replace=True)
        assert np.load(tmp_path / "e.npy").tobytes() == expected.tobytes() * 2


def test_keys_of_a_view_are_read_from_every_kind(tmp_path: Path) -> None:
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", CHECKPOINT)
        keys = db.table("ple").rowids([17, 4, 256, 9])
        lists = pa.table({"key": pa.array(keys.tolist(), pa.list_(pa.int64())), "n": range(4)})
        pq.write_table(lists, tmp_path / "k.parquet")
        save_file({"keys": keys}, tmp_path / "k.safetensors")
        np.savez(tmp_path / "k.npz", keys=keys)
        (tmp_path / "k.jsonl").write_text("".join(json.dumps(key) + "\n" for key in keys.tolist()))
        db.build_view("expected", "ple", keys=keys)
        expected = db.view("expected").keys(np.arange(4))
        for name, column in (("k.parquet", "key"), ("k.safetensors", None), ("k.npz", None), ("k.jsonl", None)):
            db.build_view("seen", "ple", keys=tmp_path / name, column=column, replace=True)
            assert np.array_equal(db.view("seen").keys(np.arange(4)), expected), name
        pq.write_table(pa.table({"key": [1, 2, 3]}), tmp_path / "k.parquet")
        build = lambda: db.build_view("bad", "ple", keys=tmp_path / "k.parquet")  # noqa: E731
        refuses(build, "k.parquet", "ends within a key", "3 are left over")
        pq.write_table(pa.table({"key": [1, None]}), tmp_path / "k.parquet")
        refuses(build, "k.parquet", "row 2", "NULL")


def test_warm_reads_only_what_is_named(tmp_path: Path) -> None:
    paths = files_of(tmp_path, IDS)
    done = run("warm", "ple", "--db", CHECKPOINT, "--ids", paths["parquet"], paths["txtlists"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ple: 5 different rows, 800 bytes, read in ")
    (tmp_path / "t.txt").write_text("17 4 256\n\n17 4\n")
    with engramsql.connect(CHECKPOINT) as db:
        rows = len(np.unique(db.table("ple").rowids([17, 4, 256])))
    done = run("warm", "ple", "--db", CHECKPOINT, "--tokens", tmp_path / "t.txt")
    assert done.stdout.startswith(f"ple: {rows} different rows, {rows * 160} bytes"), done.stdout + done.stderr
    for words, code, fragment in (
        (["--ids", paths["npy"], "--budget", "1GB"], 2, "leave it out"),
        (["--column", "a"], 2, "--column belongs to"),
        (["--ids", paths["npy"], "--tokens", paths["npy"]], 2, "not allowed with"),
        (["--ids", tmp_path / "missing.npy"], 1, "missing.npy"),
    ):
        done = run("warm", "ple", "--db", CHECKPOINT, *words)
        assert done.returncode == code
        assert fragment in done.stderr
