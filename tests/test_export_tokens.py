"""e_t of corpora as files: the values of ``Table.e_t``, sequence by sequence, however the corpus lies and is cut."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from export_readers import arrow_table, second_reader, vectors_of
from helpers import assert_same_bits, f32_bits, refuses
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engramsql
from engramsql import corpus
from engramsql.export.files import source as sources
from engramsql.export.files import token_source

TABLE = "fp8"
SEQUENCES = [[17, 4, 256], [], [9], [300, 2, 2, 2, 5, 500, 7], [1, 500, 3]]
FORMATS = ["arrow", "arrows", "feather", "parquet", "npz", "safetensors", "csv", "jsonl"]


def e_t_of(table: Any, sequences: list[list[int]], history: list[int] | None = None) -> Any:
    return np.concatenate([table.e_t(tokens, history) for tokens in sequences if tokens])


@pytest.mark.parametrize("format", FORMATS)
def test_a_record_per_token(golden_db: Any, tmp_path: Path, format: str) -> None:
    table = golden_db.table(TABLE)
    path = tmp_path / f"e.{format}"
    found = golden_db.export(TABLE, path, tokens=SEQUENCES)
    columns = second_reader(path)
    expected = e_t_of(table, SEQUENCES)
    assert found.rows == len(expected) == 14
    assert_same_bits(vectors_of(columns["e_t"], "float32"), f32_bits(expected))
    # Those without tokens count.
    assert list(columns["sequence"]) == [0] * 3 + [2] + [3] * 7 + [4] * 3
    assert list(columns["token"]) == [0, 1, 2, 0, *range(7), 0, 1, 2]
    assert list(columns["token_id"]) == [token for tokens in SEQUENCES for token in tokens]


@pytest.mark.parametrize("values", ["float32", "bfloat16", "float16", "row"])
def test_the_values_are_those_of_the_table(golden_db: Any, tmp_path: Path, values: Any) -> None:
    table = golden_db.table("v41_l1")
    path = tmp_path / "e.npy"
    golden_db.export("v41_l1", path, tokens=[[5, 6, 7]], values=values, round=values == "float16")
    found = np.load(path)
    if values == "row":
        assert found.tobytes() == table.fetch(table.rowids([5, 6, 7])).tobytes()
    elif values == "bfloat16":
        assert np.array_equal(found, table.e_t([5, 6, 7], dtype="bfloat16"))
    else:
        expected = table.e_t([5, 6, 7]).astype(found.dtype)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("format", ["arrow", "arrows", "feather", "parquet", "csv", "jsonl"])
@pytest.mark.parametrize("values", ["float32", "row"])
def test_a_record_per_sequence(golden_db: Any, tmp_path: Path, format: str, values: Any) -> None:
    table = golden_db.table(TABLE)
    path = tmp_path / f"e.{format}"
    found = golden_db.export(TABLE, path, tokens=SEQUENCES, per="sequence", values=values)
    assert found.rows == 4
    columns = second_reader(path)
    kept = [tokens for tokens in SEQUENCES if tokens]
    assert list(columns["sequence"]) == [0, 2, 3, 4]
    assert [list(tokens) for tokens in columns["tokens"]] == kept
    for tokens, vectors in zip(kept, columns["record" if values == "row" else "e_t"], strict=True):
        if values == "row":
            assert vectors_of(list(vectors), "row").tobytes() == table.fetch(table.rowids(tokens)).tobytes()
        else:
            assert_same_bits(vectors_of(list(vectors), "float32"), f32_bits(table.e_t(tokens)))
    if format not in ("csv", "jsonl"):
        type_ = arrow_table(path).schema.field("record" if values == "row" else "e_t").type
        inner = pa.binary(2560) if values == "row" else pa.list_(pa.float32(), 2560)
        assert type_.value_type == inner


def test_history_comes_before_every_sequence(golden_db: Any, tmp_path: Path) -> None:
    table = golden_db.table(TABLE)
    history = [11, 12, 13]
    assert not np.array_equal(table.rowids([17], history), table.rowids([17]))
    for per in ("token", "sequence"):
        path = tmp_path / f"{per}.parquet"
        golden_db.export(TABLE, path, tokens=SEQUENCES, history=history, per=per)
        flat = arrow_table(path).column("e_t").combine_chunks().flatten()
        flat = flat if per == "token" else flat.flatten()
        expected = e_t_of(table, SEQUENCES, history)
        assert_same_bits(flat.to_numpy().reshape(expected.shape), f32_bits(expected))


@pytest.mark.parametrize("tokens", [[], [[]], [None, []], np.empty((0, 4), np.int64)])
@pytest.mark.parametrize("per", ["token", "sequence"])
def test_a_corpus_without_tokens_is_a_file_without_records(
    golden_db: Any, tmp_path: Path, tokens: Any, per: Any
) -> None:
    path = tmp_path / "e.arrow"
    assert golden_db.export(TABLE, path, tokens=tokens, per=per).rows == 0
    assert arrow_table(path).num_rows == 0
    assert second_reader(path)["e_t"] == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 400), max_size=12), max_size=8),
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(0, 20),
    st.lists(st.integers(0, 400), max_size=3),
)
def test_however_a_corpus_is_cut_it_is_the_same(
    golden_db: Any, tmp_path: Path, sequences: list[list[int]], step: int, piece: int, first: int, history: list[int]
) -> None:
    """Small batches, pieces that cut sequences, and a start in the middle, as resume makes them."""
    table = golden_db.table(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BATCH_TOKENS", piece)
        patch.setattr(sources, "MOST_VALUES", step * 2560)
        source = token_source.token_source(
            table, lambda: corpus.pieces_of([np.array(s, np.int64) for s in sequences]), None, columns=None,
            values=None, rounded=False, per="token", history=np.array(history, np.int64), files=[], total=0,
            views=False, interrupt=lambda: None,
        )  # fmt: skip
        memory = np.empty(1 << 20, np.uint8)
        batches = [pa.table(task.compute(memory).to_pydict(), source.schema) for task in source.tasks(first, 1 << 40)]
    assert all(batch.num_rows <= step for batch in batches)
    found = pa.concat_tables([source.schema.empty_table(), *batches])
    flat = [(n, p, t) for n, s in enumerate(sequences) for p, t in enumerate(s)][first:]
    assert (
        list(zip(*(found.column(name).to_pylist() for name in ("sequence", "token", "token_id")), strict=True)) == flat
    )
    if flat:
        expected = e_t_of(table, sequences, history)[first:]
        assert_same_bits(
            found.column("e_t").combine_chunks().flatten().to_numpy().reshape(expected.shape), f32_bits(expected)
        )


def files_of(directory: Path, sequences: list[list[int]]) -> dict[str, Path]:
    """The same sequences in files of every kind that has lists."""
    table = pa.table({"number": range(len(sequences)), "tokens": pa.array(sequences, pa.list_(pa.int32()))})
    paths = {kind: directory / f"c.{kind}" for kind in ("parquet", "arrow", "arrows", "feather", "jsonl", "csv", "txt")}
    pq.write_table(table, paths["parquet"], row_group_size=2)
    for kind in ("arrow", "feather"):
        with pa.ipc.new_file(paths[kind], table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    with pa.ipc.new_stream(paths["arrows"], table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    paths["jsonl"].write_text("".join(json.dumps({"tokens": tokens, "id": 5}) + "\n" for tokens in sequences))
    cells = [
        json.dumps(tokens) if number % 2 else " ".join(map(str, tokens)) for number, tokens in enumerate(sequences)
    ]
    paths["csv"].write_text("number,tokens\n" + "".join(f'{n},"{cell}"\n' for n, cell in enumerate(cells)))
    paths["txt"].write_text("".join(" ".join(map(str, tokens)) + "\n" for tokens in sequences))
    return paths


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "feather", "jsonl", "csv", "txt"])
def test_every_kind_of_file_is_read(golden_db: Any, tmp_path: Path, kind: str) -> None:
    path = files_of(tmp_path, SEQUENCES)[kind]
    column = "tokens" if kind == "csv" else None
    golden_db.export(TABLE, tmp_path / "e.parquet", tokens=path, column=column)
    read = arrow_table(tmp_path / "e.parquet")
    assert read.column("token_id").to_pylist() == [token for tokens in SEQUENCES for token in tokens]
    # Rows count from 0; a line of CSV has a header before it.
    first = 1 if kind == "csv" else 0
    assert [number - first for number in sorted(set(read.column("sequence").to_pylist()))] == [0, 2, 3, 4]
    assert_same_bits(
        read.column("e_t").combine_chunks().flatten().to_numpy().reshape(14, -1),
        f32_bits(e_t_of(golden_db.table(TABLE), SEQUENCES)),
    )


@pytest.mark.parametrize("kind", ["npy", "npz", "savez_compressed", "safetensors"])
@pytest.mark.parametrize("shape", [(12,), (3, 4)])
def test_arrays_are_read(golden_db: Any, tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    tokens = np.arange(100, 112, dtype=np.int32).reshape(shape)
    path = tmp_path / f"c.{'npz' if kind == 'savez_compressed' else kind}"
    if kind == "npy":
        np.save(path, tokens)
    elif kind == "safetensors":
        from safetensors.numpy import save_file

        save_file({"ids": tokens, "weights": np.ones(3, np.float32)}, path)
    else:
        getattr(np, "savez" if kind == "npz" else kind)(path, ids=tokens, weights=np.ones(3, np.float32))
    golden_db.export(TABLE, tmp_path / "e.parquet", tokens=path)
    read = arrow_table(tmp_path / "e.parquet")
    assert read.column("token_id").to_pylist() == list(range(100, 112))
    assert read.column("sequence").to_pylist() == [n // shape[-1] for n in range(12)]
    expected = e_t_of(golden_db.table(TABLE), np.atleast_2d(tokens).tolist())
    assert_same_bits(read.column("e_t").combine_chunks().flatten().to_numpy().reshape(12, -1), f32_bits(expected))


def test_several_files_say_which_is_meant(golden_db: Any, tmp_path: Path) -> None:
    paths = files_of(tmp_path, SEQUENCES)
    for per in ("token", "sequence"):
        path = tmp_path / f"{per}.arrow"
        golden_db.export(TABLE, path, tokens=[paths["txt"], paths["parquet"]], per=per, columns=["file", "sequence"])
        read = arrow_table(path)
        assert pa.types.is_dictionary(read.schema.field("file").type)
        numbers = read.column("sequence").to_pylist()
        half = len(numbers) // 2
        assert numbers[:half] == numbers[half:]
        assert read.column("file").to_pylist() == [str(paths["txt"])] * half + [str(paths["parquet"])] * half
        assert second_reader(path)["file"] == read.column("file").to_pylist()


@pytest.mark.parametrize(
    ("name", "content", "column", "fragments"),
    [
        ("a.txt", "1 2\n3 999999999\n", None, ["a.txt", "line 2", "999999999", "position 1"]),
        ("a.csv", "t\n1 2\n3 x\n", None, ["a.csv", "line 3", "'x'"]),
        ("a.csv", "t\n1 2\n[3,\n", None, ["a.csv", "line 3"]),
        ("a.csv", 't\n"[3, 1.5]"\n', None, ["a.csv", "line 2", "1.5"]),
        ("a.csv", "a,b\n1,2\n", None, ["2 columns", "--column", "a, b"]),
        ("a.csv", "a,b\n1,2\n", "c", ["no column 'c'", "a, b"]),
        ("a.csv", "a,b\n1\n", "a", ["line 2 has 1 cells"]),
        ("a.csv", "", None, ["empty"]),
        ("a.jsonl", '{"t": [1]}\n{"t": [999999999]}\n', None, ["line 2", "999999999"]),
        ("a.bin", "1", None, ["ends with one of", ".safetensors", ".npz"]),
        ("missing.npy", None, None, ["missing.npy", "No such file"]),
        ("a.npz", "x", None, ["a.npz", "cannot read"]),
        ("a.safetensors", "xxxxxxxxxxx", None, ["a.safetensors", "no safetensors file"]),
        ("a.safetensors", "x", None, ["no safetensors file"]),
    ],
)
def test_errors_name_file_row_and_value(
    golden_db: Any, tmp_path: Path, name: str, content: str | None, column: str | None, fragments: list[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    message = refuses(lambda: golden_db.export(TABLE, tmp_path / "e.arrow", tokens=path, column=column), *fragments)
    assert "\n" not in message
    assert not (tmp_path / "e.arrow").exists()


def test_archives_of_several_arrays_want_a_name(golden_db: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(3), b=np.arange(4), c=np.ones(2), d=np.asfortranarray(np.ones((2, 2), np.int64)))
    export = lambda column: golden_db.export(TABLE, tmp_path / "e.parquet", tokens=path, column=column, replace=True)  # noqa: E731
    refuses(lambda: export(None), "3 arrays of integers", "--column", "a (int64 [3])")
    refuses(lambda: export("z"), "no array 'z'")
    refuses(lambda: export("c"), "array 'c'", "not an integer")
    refuses(lambda: export("d"), "Fortran")
    assert export("b").rows == 4


def test_a_sequence_that_is_no_record_is_refused(
    golden_db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_source, "MOST_RECORD_BYTES", 3 * 10240)
    path = tmp_path / "a.txt"
    path.write_text("1 2 3\n1 2 3 4\n")
    message = refuses(
        lambda: golden_db.export(TABLE, tmp_path / "e.arrow", tokens=path, per="sequence"),
        "a.txt",
        "line 2",
        "3 tokens",
    )
    assert "--per token" in message
    assert golden_db.export(TABLE, tmp_path / "e.arrow", tokens=path).rows == 7


def test_views_are_asked_and_change_nothing(golden_db: Any, tmp_path: Path) -> None:
    golden_db.export(TABLE, tmp_path / "rows.arrow", tokens=SEQUENCES)
    golden_db.build_view("seen", TABLE, SEQUENCES)
    golden_db.export(TABLE, tmp_path / "view.arrow", tokens=SEQUENCES)
    assert golden_db.view("seen").stats() or golden_db.table(TABLE).stats()
    rows, view = (arrow_table(tmp_path / f"{name}.arrow") for name in ("rows", "view"))
    assert rows.equals(view) or rows.to_pydict().keys() == view.to_pydict().keys()
    for one, other in zip(rows.column("e_t").chunks, view.column("e_t").chunks, strict=True):
        assert_same_bits(other.flatten().to_numpy(), f32_bits(one.flatten().to_numpy()))


@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("values", ["float32", "float16", "bfloat16", "row"])
def test_a_long_record_is_the_same_text_piece_by_piece(
    golden_db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, values: Any
) -> None:
    from engramsql.export.files import text_files

    tokens = [np.random.default_rng(6).integers(0, 512, length).tolist() for length in (90, 1, 200, 2)]
    options = {"tokens": tokens, "per": "sequence", "values": values, "round": values == "float16"}
    monkeypatch.setattr(text_files, "_SLICE_VALUES", 1 << 40)
    golden_db.export(TABLE, tmp_path / f"whole.{format}", **options)
    for most in (30_000, 2000):
        monkeypatch.setattr(text_files, "_SLICE_VALUES", most)
        golden_db.export(TABLE, tmp_path / f"pieces.{format}", **options, replace=True)
        assert (tmp_path / f"pieces.{format}").read_bytes() == (tmp_path / f"whole.{format}").read_bytes()


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TEMP VIEW v AS SELECT [17, 4, 256] AS tokens",
        "CREATE TEMP TABLE v AS SELECT 1 AS n, [17, 4, 256]::INTEGER[] AS ids",
        'CREATE TEMP VIEW "v" AS SELECT [17, 4, 256] AS "order"',
    ],
)
def test_a_relation_in_place_of_files_is_told_as_a_query_that_works(golden_db: Any, tmp_path: Path, made: str) -> None:
    golden_db.execute(made)
    message = refuses(
        lambda: golden_db.export(TABLE, tmp_path / "x.npy", tokens="v"), "'v' is a table or view", "--tokens", "--sql"
    )
    # Quoted as a shell takes it.
    query = shlex.split(message.partition("query: ")[2])[1]
    found = golden_db.export(golden_db.sql(query), tmp_path / "x.parquet")
    assert found.rows == 3
    e_t = np.stack(pq.read_table(tmp_path / "x.parquet")["e_t"].to_numpy())
    assert_same_bits(e_t, f32_bits(golden_db.table(TABLE).e_t([17, 4, 256])))
    golden_db.execute(f"DROP {made.split()[2]} v")


def test_texts_in_place_of_tokens_are_sent_to_the_tokenizer(golden_db: Any, tmp_path: Path) -> None:
    golden_db.execute("CREATE TEMP VIEW texts AS SELECT 'hello' AS text")
    refuses(
        lambda: golden_db.export(TABLE, tmp_path / "x.npy", tokens="texts"),
        f"engram_embeddings('{TABLE}', engram_tokens('{TABLE}', texts.text))",
    )
    golden_db.execute("DROP VIEW texts")
    # A table of vectors has nothing of the kind.
    refuses(lambda: golden_db.export(TABLE, tmp_path / "x.npy", tokens=TABLE), "no column of token ids")
    (tmp_path / "c.jsonl").write_text('{"text": "hello"}\n')
    pq.write_table(pa.table({"text": ["hello"]}), tmp_path / "c.parquet")
    for name in ("c.jsonl", "c.parquet"):
        refuses(
            lambda name=name: golden_db.export(TABLE, tmp_path / "x.npy", tokens=tmp_path / name),  # type: ignore[misc]
            "text",
            "the token ids of a text are engram_tokens('ple', text), in a query",
        )


@pytest.mark.parametrize("kind", ["relation", "pandas", "polars"])
def test_a_relation_or_a_frame_is_a_corpus(golden_db: Any, tmp_path: Path, kind: str) -> None:
    golden_db.execute("CREATE TEMP TABLE said AS SELECT unnest([1, 2, 3]) AS id, unnest([[17, 4], NULL, [9]]) AS ids")
    relation = golden_db.sql("FROM said ORDER BY id")
    tokens = {"relation": lambda: relation, "pandas": relation.df, "polars": relation.pl}[kind]()
    golden_db.export(TABLE, tmp_path / "e.arrow", tokens=tokens)
    found = arrow_table(tmp_path / "e.arrow")
    assert found["token_id"].to_pylist() == [17, 4, 9]
    assert found["sequence"].to_pylist() == [0, 0, 2]
    # The connection has no result open.
    assert golden_db.sql("SELECT count(*) FROM said").fetchall() == [(3,)]
    refuses(
        lambda: golden_db.export(TABLE, tmp_path / "none.arrow", tokens=golden_db.sql("SELECT id FROM said")),
        "no column of integer lists; its columns: id",
    )
    refuses(
        lambda: golden_db.export(TABLE, tmp_path / "none.arrow", tokens=golden_db.sql("VALUES ([1]), ([500000])")),
        "sequence 1: token id 500000 at position 0",
    )


@pytest.mark.parametrize("tokens", ["not_a_view", "hello world", ["hello world"]])
def test_a_view_or_a_text_where_a_file_belongs(golden_db: Any, tmp_path: Path, tokens: Any) -> None:
    with pytest.raises(engramsql.errors.ArgumentError) as raised:
        golden_db.export(TABLE, tmp_path / "e.arrow", tokens=tokens)
    message = str(raised.value)
    assert "engram_tokens('ple', 'the text')" in message
    # The remedy works.
    query = re.search(r"SELECT t\.token.* AS t(?= )", message)
    assert query
    golden_db.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT [17, 4] AS tokens")
    golden_db.export(golden_db.sql(query.group().replace("'ple'", f"'{TABLE}'")), tmp_path / "e.parquet")
    assert pq.read_table(tmp_path / "e.parquet").column_names == ["token", "e_t"]


def test_json_lines_of_texts(golden_db: Any, tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "hello"}\n')
    refuses(
        lambda: golden_db.export(TABLE, tmp_path / "e.arrow", tokens=tmp_path / "texts.jsonl"),
        "line 1 has no member with ids; its members: text (the token ids",
    )
