"""Views: the records of the distinct keys of a corpus, from every form of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from helpers import refuses, run_python

import engramsql
from engramsql.errors import ArgumentError, CatalogError, RowIdError, TokenIdError, UnknownTableError

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
DOCUMENTS = [[1, 2, 3, 1, 2], [7, 7, 7], [1, 2, 3]]


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", CHECKPOINT)
        yield db


def keys_of(database: Any, documents: list[list[int]]) -> np.ndarray[Any, Any]:
    """The keys of every token, in corpus order."""
    table = database.table("ple")
    return np.concatenate([table.rowids(document) for document in documents])


def check_view(database: Any, name: str, documents: list[list[int]]) -> None:
    """The view holds every key of the documents once, and the right records."""
    view, table = database.view(name), database.table("ple")
    keys = keys_of(database, documents)
    slots = view.lookup(keys)
    assert (slots >= 0).all()
    assert view.slots == len(np.unique(keys, axis=0))
    assert np.array_equal(view.keys(slots), keys)
    assert np.array_equal(view.records(slots), table.fetch(keys).reshape(len(keys), -1))
    e_t = np.concatenate([table.e_t(document) for document in documents])
    assert view.e_t(slots).tobytes() == e_t.tobytes()
    assert view.lookup(np.zeros((1, view.heads), np.int64)).tolist() == [-1]


def test_a_view_of_sequences(database: Any) -> None:
    entry = database.build_view("v", "ple", DOCUMENTS)
    check_view(database, "v", DOCUMENTS)
    assert (entry.name, entry.table, entry.tokens, entry.covered) == ("v", "ple", 11, 11)
    assert entry.slots == len(np.unique(keys_of(database, DOCUMENTS), axis=0))
    assert [view.name for view in database.record_views()] == ["v"]
    view = database.view("v")
    assert (view.name, view.table, view.form, view.order) == ("v", "ple", "rows", "key")
    assert view.record_bytes == view.heads * database.table("ple").row_bytes
    assert view.bytes == view.slots * view.record_bytes


def corpora(tmp_path: Path) -> list[Any]:
    lists = pa.array(DOCUMENTS, pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": lists}), tmp_path / "c.parquet")
    (tmp_path / "c.txt").write_text("".join(" ".join(map(str, d)) + "\n" for d in DOCUMENTS))
    return [iter(DOCUMENTS), lists, tmp_path / "c.parquet", str(tmp_path / "c.txt"), [tmp_path / "c.txt"]]


def test_every_form_of_a_corpus_gives_the_same_bytes(database: Any, tmp_path: Path) -> None:
    database.build_view("v", "ple", DOCUMENTS)
    expected = (tmp_path / "db" / "views" / "v" / "shard_000.bin").read_bytes()
    for number, corpus in enumerate(corpora(tmp_path)):
        database.build_view(f"v{number}", "ple", corpus)
        found = (tmp_path / "db" / "views" / f"v{number}" / "shard_000.bin").read_bytes()
        assert found == expected


def test_a_query_is_a_corpus(database: Any, tmp_path: Path) -> None:
    corpora(tmp_path)
    database.create_view("documents", f"SELECT tokens, 1 AS n FROM '{tmp_path / 'c.parquet'}'")
    database.build_view("v", "ple", sql="SELECT tokens FROM documents")
    check_view(database, "v", DOCUMENTS)
    database.build_view("w", "ple", sql="SELECT [1, 2] AS a, [3]::INTEGER[] AS b", column="b")
    check_view(database, "w", [[3]])
    refuses(lambda: database.build_view("x", "ple", sql="SELECT [1] AS a, [2] AS b"), "a, b", "name one")
    refuses(lambda: database.build_view("x", "ple", sql="SELECT 1 AS a"), "no column of integer lists")
    refuses(lambda: database.build_view("x", "ple", sql="SELECT"), "parser error")
    # Python variables are no tables here.
    hidden = pa.table({"tokens": [[1]]})
    refuses(lambda: database.build_view("x", "ple", sql="SELECT tokens FROM hidden"), "hidden")
    assert hidden.num_rows == 1
    assert [view.name for view in database.record_views()] == ["v", "w"]


def test_access_order_and_key_order(database: Any) -> None:
    keys = keys_of(database, DOCUMENTS)
    _, first = np.unique(keys, axis=0, return_index=True)
    database.build_view("access", "ple", DOCUMENTS, order="access")
    view = database.view("access")
    assert np.array_equal(view.keys(np.arange(view.slots)), keys[np.sort(first)])
    check_view(database, "access", DOCUMENTS)
    database.build_view("key", "ple", DOCUMENTS)
    view = database.view("key")
    assert np.array_equal(view.keys(np.arange(view.slots)), np.unique(keys, axis=0))


def test_float32_records(database: Any) -> None:
    database.build_view("v", "ple", DOCUMENTS, form="float32")
    view, table = database.view("v"), database.table("ple")
    slots = view.lookup(table.rowids([1, 2, 3]))
    assert view.records(slots).tobytes() == table.e_t([1, 2, 3]).tobytes() == view.e_t(slots).tobytes()
    assert view.form == "float32"


def test_only_the_most_frequent_keys(database: Any) -> None:
    entry = database.build_view("top", "ple", DOCUMENTS, top=2)
    keys = keys_of(database, DOCUMENTS)
    _, counts = np.unique(keys, axis=0, return_counts=True)
    assert entry.slots == 2
    assert entry.covered == sum(sorted(counts)[-2:])
    assert entry.tokens == len(keys)
    record = database.view("top").record_bytes
    assert database.build_view("budget", "ple", DOCUMENTS, budget=3 * record + 1).slots == 3
    slots = database.view("top").lookup(keys)
    assert (slots >= 0).sum() == entry.covered


def test_a_view_of_keys(database: Any, tmp_path: Path) -> None:
    keys = keys_of(database, DOCUMENTS)[::-1]
    (tmp_path / "keys.txt").write_text("".join(f"{rowid}\n" for rowid in keys.reshape(-1)))
    np.save(tmp_path / "keys.npy", keys.astype(np.uint32))
    for name, given in {"a": keys, "b": tmp_path / "keys.txt", "c": tmp_path / "keys.npy", "d": keys.tolist()}.items():
        entry = database.build_view(name, "ple", keys=given)
        view = database.view(name)
        assert entry.slots == len(keys)
        assert np.array_equal(view.keys(np.arange(view.slots)), keys)
        slots = view.lookup(keys)
        assert np.array_equal(view.keys(slots), keys)
        assert (slots <= np.arange(len(keys))).all()
        assert view.lookup_all(keys[0]).tolist() == np.flatnonzero((keys == keys[0]).all(axis=1)).tolist()


def test_keys_of_a_table_without_a_spec(database: Any, tmp_path: Path) -> None:
    data = make_store(tmp_path / "s", rows=10, width=8)
    database.register("s", tmp_path / "s", width=8)
    keys = np.array([[0, 29], [11, 3], [0, 29]])
    refuses(lambda: database.build_view("v", "s", keys=keys), "heads")
    entry = database.build_view("v", "s", keys=keys, heads=2)
    assert (entry.slots, entry.heads, entry.record_bytes) == (3, 2, 16)
    view = database.view("v")
    assert np.array_equal(view.records([0, 1, 2]), data[keys].reshape(3, 16))
    assert view.lookup(keys).tolist() == [0, 1, 0]
    assert view.dim is None
    refuses(lambda: view.e_t([0]), "'s' has no value format")
    refuses(lambda: database.build_view("w", "ple", [1], heads=3), "16 heads, not 3")


def test_a_view_that_was_stopped_is_resumed(database: Any) -> None:
    """What ends it comes after the keys are complete, or the view is there already."""

    def stop(stage: str, done: int, total: int) -> None:
        if stage != "reading tokens":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        database.build_view("v", "ple", DOCUMENTS, progress=stop)
    if not database.record_views():
        database.build_view("v", "ple", DOCUMENTS, resume=True)
    check_view(database, "v", DOCUMENTS)
    assert database.orphans() == []


def test_e_t_reads_records_where_a_view_has_them(database: Any) -> None:
    tokens = [1, 2, 3, 9]
    expected = database.table("ple").e_t(tokens)
    database.build_view("v", "ple", [1, 2, 3])
    table, view = database.table("ple"), database.view("v")
    rows = {stats.path: stats.rows for stats in table.stats()}
    assert table.e_t(tokens).tobytes() == expected.tobytes()
    # One token of 16 rows is not in the view.
    assert sum(stats.rows for stats in table.stats()) - sum(rows.values()) == view.heads
    assert sum(stats.rows for stats in view.stats()) == 3
    assert [(shard.shard, shard.rows, shard.bytes) for shard in view.shards()] == [(0, 3, 3 * view.record_bytes)]
    bf16 = np.empty((4, view.dim), np.uint16)
    assert table.e_t(tokens, out=bf16, dtype="bfloat16") is bf16
    database.drop("v")
    assert bf16.tobytes() == database.table("ple").e_t(tokens, dtype="bfloat16").tobytes()


def test_shapes_follow_the_slots(database: Any) -> None:
    database.build_view("v", "ple", DOCUMENTS)
    view = database.view("v")
    assert view.records([[0, 1], [1, 0]]).shape == (2, 2, view.record_bytes)
    assert view.e_t([0]).shape == (1, view.dim)
    assert view.keys(np.zeros((2, 3), np.int8)).shape == (2, 3, view.heads)
    out = np.empty((2, view.record_bytes), np.uint8)
    assert view.records([0, 1], out) is out
    for call in (view.records, view.e_t, view.keys):
        for slot in (-1, view.slots, 2**80):
            with pytest.raises(RowIdError):
                call([slot])
    with pytest.raises(TypeError):
        view.records([1.5])
    with pytest.raises(ArgumentError):
        view.lookup([[1, 2, 3]])


def test_a_token_out_of_range_is_told_with_its_place(database: Any) -> None:
    with pytest.raises(TokenIdError, match=r"sequence 1\D.*\b99999999\b.*\b2\b"):
        database.build_view("v", "ple", [[1, 2], [3, 4, 99999999]])
    with pytest.raises(TokenIdError, match="-1"):
        database.build_view("v", "ple", [-1])
    assert database.record_views() == []
    assert database.orphans() == []


def test_a_token_of_a_file_is_told_with_file_and_line(database: Any, tmp_path: Path) -> None:
    """Empty sequences count, as an editor and SQL count them."""
    bad = [[1, 2], [], [3, 600]]
    (tmp_path / "a.txt").write_text("\n".join(" ".join(map(str, row)) for row in bad))
    (tmp_path / "a.jsonl").write_text("[1, 2]\n\n[3, 600]\n")
    pq.write_table(pa.table({"t": bad}), tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema({"t": pa.list_(pa.int64())})) as file:
        file.write_table(pa.table({"t": bad}), max_chunksize=1)
    np.save(tmp_path / "a.npy", np.array([[1, 2], [2, 3], [3, 600]]))
    (tmp_path / "good.txt").write_text("1 2\n3\n")
    for name, count in {
        "a.txt": "line",
        "a.jsonl": "line",
        "a.parquet": "row",
        "a.arrow": "row",
        "a.npy": "row",
    }.items():
        for corpus in (tmp_path / name, [tmp_path / "good.txt", tmp_path / name]):
            refuses(
                lambda corpus=corpus: database.build_view("bad", "ple", corpus),
                f"{name}', {count} 3: token id 600 at position 1 is outside the vocabulary (0 to 511)",
            )
    pq.write_table(pa.table({"t": [[1], [], [2, None]]}), tmp_path / "n.parquet")
    refuses(lambda: database.build_view("bad", "ple", tmp_path / "n.parquet"), "n.parquet", "row 3: a token is NULL")


def test_a_line_longer_than_a_block_counts_its_positions(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engramsql.data_files import texts

    monkeypatch.setattr(texts, "_BLOCK_BYTES", 8)
    (tmp_path / "a.txt").write_text("7\n" + "1 " * 50 + "-1 600")
    refuses(lambda: database.build_view("bad", "ple", tmp_path / "a.txt"), "line 2: '-1'")
    (tmp_path / "a.txt").write_text("7\n" + "1 " * 50 + "600")
    refuses(lambda: database.build_view("bad", "ple", tmp_path / "a.txt"), "line 2: token id 600 at position 50 ")


def test_a_relation_is_a_corpus(database: Any) -> None:
    rows = database.sql("SELECT [1, 2, 3] AS tokens UNION ALL SELECT [4]")
    assert database.build_view("rel", "ple", rows).tokens == 4
    two = database.sql("SELECT [1] AS a, [2, 3] AS b")
    refuses(lambda: database.build_view("two", "ple", two), "a, b", "--column")
    assert database.build_view("two", "ple", two, column="b").tokens == 2
    # The connection is free again.
    assert database.sql("SELECT 1").fetchall() == [(1,)]


def test_what_cannot_be_built_is_refused(database: Any, tmp_path: Path) -> None:
    for given in ({}, {"tokens": [1], "keys": [[1]]}, {"tokens": [1], "sql": "SELECT 1"}):
        with pytest.raises(ArgumentError, match="tokens, keys or sql"):
            database.build_view("v", "ple", **given)
    with pytest.raises(UnknownTableError):
        database.build_view("v", "nope", [1])
    with pytest.raises(ArgumentError):
        database.build_view("v", "ple", [])
    with pytest.raises(ArgumentError, match="order"):
        database.build_view("v", "ple", [1], order="random")
    with pytest.raises(ArgumentError, match="form"):
        database.build_view("v", "ple", [1], form="fp8")
    with pytest.raises(ArgumentError, match="top"):
        database.build_view("v", "ple", keys=keys_of(database, [[1]]), top=1)
    with pytest.raises(RowIdError):
        database.build_view("v", "ple", keys=np.full((1, 16), 1 << 40))
    with pytest.raises(ArgumentError):
        database.build_view("v", "ple", keys=np.zeros((1, 3), np.int64))
    with pytest.raises(CatalogError):
        database.build_view("ple", "ple", [1])
    with pytest.raises(UnknownTableError):
        database.view("v")
    with engramsql.connect(tmp_path / "db", read_only=True) as db, pytest.raises(CatalogError):
        db.build_view("v", "ple", [1])
    assert database.record_views() == []


def test_a_view_is_replaced_only_when_asked(database: Any) -> None:
    database.build_view("v", "ple", [1, 2])
    with pytest.raises(CatalogError, match="'v'"):
        database.build_view("v", "ple", [3])
    database.build_view("v", "ple", [3], replace=True)
    check_view(database, "v", [[3]])
    assert database.orphans() == []


def test_progress_is_told(database: Any) -> None:
    told: list[tuple[str, int, int]] = []
    database.build_view("v", "ple", DOCUMENTS, progress=lambda *step: told.append(step))
    assert told[0] == ("reading tokens", 11, 0)
    assert len({stage for stage, _, _ in told}) > 1


def test_the_index_is_built_anew(database: Any, tmp_path: Path) -> None:
    database.build_view("v", "ple", DOCUMENTS)
    index = tmp_path / "db" / "views" / "v" / "index"
    before = {path.name: path.read_bytes() for path in index.iterdir()}
    (name,) = (name for name in before if name.endswith(".bin"))
    damaged = bytearray(before[name])
    damaged[0] ^= 1
    (index / name).write_bytes(damaged)
    # A build that was killed between writing its manifest and giving it its name leaves this.
    (index / ".index.json.9lTy1j").write_bytes(before["index.json"])
    assert not database.verify("v", "full").good
    database.build_index("v")
    assert {path.name: path.read_bytes() for path in index.iterdir()} == before
    assert database.verify("v", "full").good
    check_view(database, "v", DOCUMENTS)
    with pytest.raises(UnknownTableError):
        database.build_index("nope")


def test_a_killed_build_is_resumed_without_its_corpus(database: Any, tmp_path: Path) -> None:
    code = f"""
    import sys, engramsql
    with engramsql.connect(sys.argv[1]) as db:
        db.build_view("v", "ple", {DOCUMENTS})
    """
    killed = run_python(code, args=[str(tmp_path / "db")], env={"ENGRAMSQL_FAULT": "kill@view.index"}, expect=None)
    assert killed.returncode == -9
    assert database.record_views() == []
    refuses(lambda: database.build_view("v", "ple", DOCUMENTS), "resume")

    def unread() -> Any:
        raise AssertionError("the corpus was read again")
        yield

    database.build_view("v", "ple", unread(), resume=True)
    check_view(database, "v", DOCUMENTS)


def test_a_long_sequence_is_one_sequence(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into batches, its tokens still see those before the cut."""
    from engramsql import corpus

    monkeypatch.setattr(corpus, "BATCH_TOKENS", 7)
    tokens = np.random.default_rng(0).integers(0, 100, 100).tolist()
    database.build_view("v", "ple", [tokens, tokens[::-1]])
    check_view(database, "v", [tokens, tokens[::-1]])
