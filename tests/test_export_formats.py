"""Tables and rows of ids as files of every format: the same bits, by two readers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from export_readers import arrow_table, second_reader, vectors_of
from golden_data import GOLDEN, arrays_of
from helpers import assert_same_bits, bf16_bits, bf16_values, f32_bits, refuses

import engramsql
from engramsql.export.files import array_files
from engramsql.export.files import source as sources
from engramsql.export.files.formats import format_of
from engramsql.export.files.sink import Sink
from engramsql.export.files.writer import Layout

FORMATS = ["arrow", "arrows", "feather", "parquet", "npy", "npz", "safetensors", "csv", "jsonl"]
ARROW = ["arrow", "arrows", "feather", "parquet"]
# 1408 rows with padding at the end, all FP8 bytes among them.
TABLES = ["fp8", "bf16", "nvfp4", "v41_l1"]


def halves_store(directory: Path) -> Path:
    """A store whose values are all float16: FP8 with a scale of one."""
    directory.mkdir()
    rows = np.random.default_rng(5).integers(0, 256, (300, 32), dtype=np.uint8)
    rows.tofile(directory / "shard_000.bin")
    return directory


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_comes_back_bit_by_bit(golden_db: Any, tmp_path: Path, name: str, format: str) -> None:
    table = golden_db.table(name)
    path = tmp_path / f"rows.{format}"
    found = golden_db.export(name, path)
    assert (found.path, found.format, found.rows, found.files) == (path, format, table.rows, [path])
    assert found.bytes == path.stat().st_size
    columns = second_reader(path)
    expected = f32_bits(table.vectors(np.arange(table.rows)))
    assert_same_bits(vectors_of(columns["" if format == "npy" else "embedding"], "float32"), expected)
    if format != "npy":
        assert list(columns["rowid"]) == list(range(table.rows))
    if format in ARROW:
        read = arrow_table(path)
        assert read.schema.names == ["rowid", "head", "embedding"]
        assert read.schema.field("embedding").type == pa.list_(pa.float32(), table.dim)
        values = read.column("embedding").combine_chunks().flatten().to_numpy()
        assert_same_bits(values.reshape(table.rows, -1), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_come_back_as_they_are_stored(golden_db: Any, tmp_path: Path, format: str) -> None:
    table = golden_db.table("v41_l1")
    path = tmp_path / f"rows.{format}"
    golden_db.export("v41_l1", path, values="row")
    expected = table.fetch(np.arange(table.rows))
    column = second_reader(path)["" if format == "npy" else "row"]
    assert np.array_equal(vectors_of(column, "row"), expected)
    if format in ARROW:
        read = arrow_table(path)
        assert read.schema.field("row").type == pa.binary(table.row_bytes)
        assert b"".join(read.column("row").to_pylist()) == expected.tobytes()


@pytest.mark.parametrize("format", FORMATS)
def test_bfloat16_is_rounded_once(golden_db: Any, tmp_path: Path, format: str) -> None:
    table = golden_db.table("v41_l1")
    path = tmp_path / f"rows.{format}"
    golden_db.export("v41_l1", path, values="bfloat16", columns=["embedding"])
    bits = table.vectors(np.arange(table.rows), dtype="bfloat16")
    assert np.array_equal(bits, bf16_bits(table.vectors(np.arange(table.rows))))
    if format == "safetensors":
        header = path.read_bytes()
        entry = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["embedding"]
        assert (entry["dtype"], entry["shape"]) == ("BF16", [table.rows, table.dim])
        assert header[-bits.nbytes :] == bits.tobytes()
        return
    columns = second_reader(path)
    found = columns["" if format == "npy" else "embedding"]
    if format in ("csv", "jsonl"):
        # Text shows the numbers, of which bit patterns are a secret.
        assert_same_bits(vectors_of(found, "float32"), f32_bits(bf16_values(bits)))
        return
    assert np.array_equal(np.array([list(vector) for vector in found], np.uint16), bits)
    if format in ARROW:
        field = arrow_table(path).schema.field("embedding")
        assert field.type == pa.list_(pa.uint16(), table.dim)
        assert field.metadata[b"engramsql.values"] == b"bfloat16"


@pytest.mark.parametrize("format", ["arrow", "arrows", "parquet", "npy", "npz", "safetensors", "jsonl"])
def test_float16_is_exact(tmp_path: Path, format: str) -> None:
    with engramsql.connect() as db:
        db.register("t", halves_store(tmp_path / "s"), width=32, format="fp8_e4m3", scale=1.0)
        single = db.table("t").vectors(np.arange(300))
        path = tmp_path / f"rows.{format}"
        db.export("t", path, values="float16", columns=["embedding"])
        if format in ("arrow", "arrows", "parquet"):
            read = arrow_table(path)
            assert read.schema.field("embedding").type == pa.list_(pa.float16(), 32)
            found = read.column("embedding").combine_chunks().flatten().to_numpy().reshape(300, 32)
        else:
            column = second_reader(path)["" if format == "npy" else "embedding"]
            found = vectors_of(column, "float32") if format == "jsonl" else np.array(column)
        assert found.dtype == (np.float32 if format == "jsonl" else np.float16)
        assert_same_bits(found.astype(np.float32), f32_bits(single))


def test_float16_rounds_only_where_it_may(golden_db: Any, tmp_path: Path) -> None:
    table = golden_db.table("fp8")
    path = tmp_path / "rows.npy"
    message = refuses(lambda: golden_db.export("fp8", path, values="float16"), "is no float16", "--round", "row ")
    assert "table 'fp8'" in message
    assert not list(tmp_path.iterdir())
    golden_db.export("fp8", path, values="float16", round=True)
    expected = table.vectors(np.arange(table.rows)).astype(np.float16)
    assert np.array_equal(
        np.load(path).view(np.uint16)[~np.isnan(expected)], expected.view(np.uint16)[~np.isnan(expected)]
    )
    assert np.array_equal(np.isnan(np.load(path)), np.isnan(expected))


@pytest.mark.parametrize("rounded", [False, True])
def test_float16_refuses_what_is_beyond_its_range(tmp_path: Path, rounded: bool) -> None:
    rows = np.zeros((8, 4), np.uint8)
    rows[5, 2] = 0x7E  # 448, which the scale brings beyond 65504
    directory = tmp_path / "s"
    directory.mkdir()
    rows.tofile(directory / "shard_000.bin")
    with engramsql.connect() as db:
        db.register("t", directory, width=4, format="fp8_e4m3", scale=1024.0)
        export = lambda ids: db.export("t", tmp_path / "a.npy", ids=ids, values="float16", round=rounded)  # noqa: E731
        refuses(lambda: export([5]), "row 5, value 2", "458752", "beyond the range of float16")
        # What another row holds is nothing to this one.
        assert export([0, 1]).rows == 2


@pytest.mark.parametrize("format", ARROW)
@pytest.mark.parametrize("ids", [[7, None, 9], [7, None], [None, 7], [None], []])
@pytest.mark.parametrize("values", ["float32", "row"])
def test_null_ids_leave_their_neighbours_alone(
    golden_db: Any, tmp_path: Path, format: str, ids: list[int | None], values: str
) -> None:
    table = golden_db.table("fp8")
    path = tmp_path / f"rows.{format}"
    found = golden_db.export("fp8", path, ids=ids, values=values)
    assert found.rows == len(ids)
    name = "row" if values == "row" else "embedding"
    read = arrow_table(path)
    assert read.column("ord").to_pylist() == list(range(len(ids)))
    assert read.column("rowid").to_pylist() == ids
    for column in (read.column(name).to_pylist(), second_reader(path)[name]):
        for value, rowid in zip(column, ids, strict=True):
            if rowid is None:
                assert value is None
            elif values == "row":
                assert bytes(value) == table.fetch([rowid]).tobytes()
            else:
                assert_same_bits(np.array(list(value)), f32_bits(table.vectors([rowid])[0]))


@pytest.mark.parametrize("format", ["npz", "safetensors"])
def test_null_has_no_place_in_arrays(golden_db: Any, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"rows.{format}"
    refuses(lambda: golden_db.export("fp8", path, ids=[3, None]), "column 'rowid', record 1", "NULL", format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_no_rows_make_a_whole_file(golden_db: Any, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"rows.{format}"
    found = golden_db.export("fp8", path, ids=[])
    assert found.rows == 0
    if format in ARROW:
        read = arrow_table(path)
        assert (read.num_rows, read.schema.names) == (0, ["ord", "rowid", "head", "embedding"])
        assert list(second_reader(path)) == read.schema.names
    elif format == "npy":
        assert np.load(path).shape == (0, 160)
    elif format in ("npz", "safetensors"):
        assert {name: len(column) for name, column in second_reader(path).items()} == {
            "ord": 0,
            "rowid": 0,
            "embedding": 0,
        }
    elif format == "csv":
        assert path.read_text() == "ord,rowid,head,embedding\n"
    else:
        assert path.read_bytes() == b""


def test_the_text_of_a_query_is_told_to_be_a_relation(golden_db: Any, tmp_path: Path) -> None:
    sql, path = "SELECT rowid FROM fp8 LIMIT 3", tmp_path / "x.parquet"
    refuses(lambda: golden_db.export(sql, path), "SELECT rowid", "is a query", "pass db.sql(...)")
    assert not path.exists()
    assert golden_db.export(golden_db.sql(sql), path).rows == 3


def test_ids_keep_their_order_and_duplicates(golden_db: Any, tmp_path: Path) -> None:
    table = golden_db.table("bf16")
    ids = np.random.default_rng(3).integers(0, table.rows, 500)
    golden_db.export("bf16", tmp_path / "a.npy", ids=ids)
    assert_same_bits(np.load(tmp_path / "a.npy"), f32_bits(table.vectors(ids)))
    golden_db.export("bf16", tmp_path / "b.npy", ids=ids.reshape(50, 10))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("compression", ["lz4", "zstd", "none"])
@pytest.mark.parametrize("format", ARROW)
def test_compression_changes_no_bit(golden_db: Any, tmp_path: Path, format: str, compression: str) -> None:
    path = tmp_path / f"rows.{format}"
    golden_db.export("fp8", path, compression=compression)
    golden_db.export("fp8", tmp_path / "plain.arrow")
    assert arrow_table(path).to_pydict().keys() == arrow_table(tmp_path / "plain.arrow").to_pydict().keys()
    read, plain = (
        arrow_table(p).column("embedding").combine_chunks().flatten() for p in (path, tmp_path / "plain.arrow")
    )
    assert read.buffers()[1].to_pybytes()[: 1408 * 640] == plain.buffers()[1].to_pybytes()[: 1408 * 640]
    if format == "parquet":
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
        assert chunk.compression == {"lz4": "LZ4", "zstd": "ZSTD", "none": "UNCOMPRESSED"}[compression]


@pytest.mark.parametrize("format", [*ARROW, "safetensors"])
def test_the_schema_says_where_the_records_come_from(tmp_path: Path, format: str) -> None:
    """Table, spec, format and scale of the values, versions, and the digest of a built table."""
    with engramsql.connect(tmp_path / "db") as db:
        db.build("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        path = tmp_path / f"rows.{format}"
        db.export("ple", path)
        catalog = json.loads((tmp_path / "db" / "engram.json").read_text())
    if format == "safetensors":
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            found = file.metadata()
    else:
        found = {key.decode(): value.decode() for key, value in arrow_table(path).schema.metadata.items()}
    assert found["engramsql.table"] == "ple"
    assert found["engramsql.spec"] == "qwen_ple_v1"
    assert found["engramsql.format"] == "fp8_e4m3"
    assert np.float32(found["engramsql.scale"]) == np.float32(0.00019931793212890625)
    assert found["engramsql.values"] == "float32"
    assert found["engramsql.version"] == engramsql.__version__
    assert found["engramsql.source_digest"] == catalog["tables"][0]["digest"]


def test_batches_stay_within_what_readers_can_count(
    golden_db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values per batch are bounded: offsets of 32 bits would overflow at 2^31 of them, here at 4000."""
    monkeypatch.setattr(sources, "MOST_VALUES", 4000)
    golden_db.export("fp8", tmp_path / "rows.arrow")
    with pa.ipc.open_file(tmp_path / "rows.arrow") as file:
        sizes = [file.get_batch(number).num_rows for number in range(file.num_record_batches)]
        for number in range(file.num_record_batches):
            file.get_batch(number).validate(full=True)
    assert sum(sizes) == 1408
    assert max(sizes) == 4000 // 160


def test_columns_are_those_asked_for(golden_db: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    golden_db.export("v41_l1", path, columns=["row", "rowid", "embedding"])
    read = arrow_table(path)
    table = golden_db.table("v41_l1")
    assert read.schema.names == ["row", "rowid", "embedding"]
    assert b"".join(read.column("row").to_pylist()) == table.fetch(np.arange(table.rows)).tobytes()
    flat = read.column("embedding").combine_chunks().flatten().to_numpy().reshape(table.rows, -1)
    assert_same_bits(flat, f32_bits(table.vectors(np.arange(table.rows))))
    golden_db.export("v41_l1", tmp_path / "ids.npz", columns=["rowid"])
    assert arrays_of(tmp_path / "ids.npz")["rowid"].tolist() == list(range(table.rows))


def test_heads_are_those_of_the_scan(golden_db: Any, tmp_path: Path) -> None:
    golden_db.export("fp8", tmp_path / "rows.parquet", columns=["rowid", "head"])
    expected = golden_db.sql("SELECT rowid, head FROM engram_scan('fp8') ORDER BY rowid").fetchall()
    read = arrow_table(tmp_path / "rows.parquet")
    assert list(zip(*read.to_pydict().values(), strict=True)) == expected
    assert read.column("head").null_count > 0


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"path": "rows.bin"}, ["'", "rows.bin", "ending", "--format", ".parquet"]),
        ({"format": "xlsx"}, ["no file format 'xlsx'", "parquet"]),
        ({"compression": "gzip"}, ["gzip", "lz4, zstd, none"]),
        ({"path": "rows.npy", "compression": "lz4"}, ["npy has no compression 'lz4'"]),
        ({"values": "float64"}, ["float64", "float32, float16, bfloat16, row"]),
        ({"round": True}, ["round", "float16"]),
        ({"columns": ["rowid", "norm"]}, ["no column 'norm'", "rowid, head, embedding, row"]),
        ({"columns": ["rowid", "rowid"]}, ["'rowid' is given twice"]),
        ({"columns": []}, ["needs a column"]),
        ({"columns": "rowid"}, ["list of names"]),
        ({"path": "rows.npy", "columns": ["rowid", "embedding"]}, ["one array", "npz"]),
        ({"path": "rows.npz", "columns": ["head"]}, ["column 'head', record 1392", "NULL"]),
        ({"values": "row", "columns": ["embedding"]}, ["'row'", "embedding"]),
        ({"tokens": [1], "ids": [1]}, ["tokens or ids, not both"]),
        ({"ids": [1, 1408]}, ["position 1", "row id 1408", "table 'fp8'", "0 to 1407"]),
        ({"ids": [1, -2]}, ["row id -2"]),
        ({"ids": [1, 2.5]}, ["2.5", "integer"]),
        ({"ids": [True]}, ["True", "integer"]),
        ({"ids": np.array([1.5])}, ["1.5"]),
        ({"ids": [1 << 70]}, ["beyond every table"]),
        ({"ids": 5}, ["row ids", "int"]),
        ({"tokens": [600_000_000]}, ["sequence 0", "token id 600000000", "position 0", "vocabulary"]),
        ({"tokens": [[1], [2, -1]]}, ["sequence 1", "token id -1", "position 1"]),
        ({"tokens": [1], "per": "batch"}, ["'token' or 'sequence'"]),
        ({"tokens": [1], "history": [600_000_000]}, ["history", "600000000", "position 0"]),
        ({"tokens": [1], "path": "a.npz", "per": "sequence"}, ["sequences differ in length"]),
        ({"per": "sequence"}, ["belong to tokens"]),
        ({"column": "x"}, ["column belongs to files"]),
        ({"resume": True}, ["rows_per_file"]),
        ({"rows_per_file": 0}, ["rows_per_file", "0"]),
        ({"rows_per_file": 5, "resume": True, "restart": True}, ["one of them"]),
        ({"rows_per_file": 5, "resume": True, "ids": [1]}, ["in memory"]),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing(
    golden_db: Any, tmp_path: Path, options: dict[str, Any], fragments: list[str]
) -> None:
    path = tmp_path / "out" / options.pop("path", "rows.arrow")
    message = refuses(lambda: golden_db.export("fp8", path, **options), *fragments)
    assert "\n" not in message
    assert not [left for left in tmp_path.rglob("*") if left.is_file()]


def test_what_cannot_be_decoded_or_hashed_is_refused(db: Any, tmp_path: Path) -> None:
    db.register("bytes", halves_store(tmp_path / "s"), width=32)
    refuses(lambda: db.export("bytes", tmp_path / "a.npy"), "no value format", "--values row")
    refuses(lambda: db.export("bytes", tmp_path / "a.npy", tokens=[1]), "no hash spec", "--ids")
    refuses(lambda: db.export("nothing", tmp_path / "a.npy"), "nothing")
    refuses(lambda: db.export(5, tmp_path / "a.npy"), "relation", "int")
    assert db.export("bytes", tmp_path / "a.npy", values="row").rows == 300


def test_a_file_is_replaced_only_when_asked(golden_db: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_text("precious")
    refuses(lambda: golden_db.export("fp8", path), "exists already", "--replace")
    assert path.read_text() == "precious"
    refuses(lambda: golden_db.export("fp8", path, replace=True, ids=[9999]), "9999")
    assert path.read_text() == "precious"
    golden_db.export("fp8", path, replace=True)
    assert np.load(path).shape == (1408, 160)
    (tmp_path / "d").mkdir()
    refuses(lambda: golden_db.export("fp8", tmp_path / "d", format="npy", replace=True), "is a directory")
    assert sorted(left.name for left in tmp_path.iterdir()) == ["a.npy", "d"]


@pytest.mark.parametrize("writer", [array_files.Npz, array_files.Safetensors])
def test_a_column_that_waited_is_what_was_written(tmp_path: Path, writer: Any) -> None:
    """A disk that fails later loses pages of a file that nobody syncs."""
    schema = pa.schema([pa.field("rowid", pa.int64()), pa.field("row", pa.binary(8))])
    layout = Layout(format_of("a.npz", None), schema, "none", None, tmp_path)
    batch = pa.record_batch([pa.array([1, 2]), pa.array([b"x" * 8, b"y" * 8], pa.binary(8))], schema=schema)
    for damaged in (False, True):
        with open(tmp_path / "a", "wb") as file:
            sink = Sink(file.fileno())
            columns = writer(layout, sink)
            columns.write(batch)
            (waiting, *_) = [one for one in columns._columns.waiting if one is not None]
            waiting.flush()
            if damaged:
                os.pwrite(waiting.fileno(), b"\x55", 3)
                refuses(columns.close, "other bytes than were written")
                columns.abandon()
            else:
                columns.close()
            sink.detach()
