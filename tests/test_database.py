"""Databases: opening, naming, views, and what one connection sees of another's changes."""

import atexit
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from helpers import named

import engramsql
from engramsql import errors as engram_errors
from engramsql.database import Database

GOLDEN = Path(__file__).parent / "golden"
CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
ROWS = 1408


@pytest.fixture
def db() -> Iterator[Database]:
    with engramsql.connect() as database:
        database.register("ple", CHECKPOINT)
        yield database


def count(database: Database, relation: str) -> int:
    rows = database.sql(f"SELECT count(*) FROM {relation}").fetchall()
    return int(rows[0][0])


def test_memory_database_leaves_nothing_behind():
    before = set(os.listdir(tempfile.gettempdir()))
    with engramsql.connect() as database:
        assert database.tables() == []
        assert database.directory is None
        assert repr(database) == "<Database ':memory:': no tables>"
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("engramsql-")}


def test_directory_database_is_there_again(tmp_path: Path):
    path = tmp_path / "a folder" / "größe 'x' 数据"
    with engramsql.connect(path) as database:
        (entry,) = database.register("ple", CHECKPOINT)
        assert (entry.name, entry.rows, entry.dim, entry.in_place) == ("ple", ROWS, 160, True)
        assert database.directory == path
    with engramsql.connect(path) as database:
        assert [entry.name for entry in database.tables()] == ["ple"]
        assert count(database, "ple") == ROWS


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("ckpt_qwen4_exp_fp8", ["ple"]),
        ("ckpt_deepseek_v41", ["engram_l1", "engram_l3"]),
        ("peer_store/rows", ["rows"]),
    ],
)
def test_a_source_opens_under_a_name_that_fits(source: str, names: list[str]):
    with engramsql.connect(GOLDEN / source) as database:
        assert [entry.name for entry in database.tables()] == names
        for name in names:
            assert count(database, name) == database.table(name).rows


def test_python_and_sql_agree(db: Database):
    tokens = [5, 1, 7, 300]
    table = db.table("ple")
    rows = db.sql(
        "SELECT rowid, row FROM engram_fetch('ple', rowids_for_seq('ple', ?)) ORDER BY ord", [tokens]
    ).fetchall()
    rowids = table.rowids(tokens)
    assert [row[0] for row in rows] == rowids.ravel().tolist()
    assert b"".join(row[1] for row in rows) == table.fetch(rowids).tobytes()


@pytest.mark.parametrize("path", ["", 5, object()], ids=named)
def test_a_path_that_is_none_is_refused(path: object):
    with pytest.raises(engram_errors.ArgumentError):
        engramsql.connect(path)


def test_what_is_no_database_and_no_source_is_named(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(
        engram_errors.SourceError,
        match=r"neither a checkpoint .* nor a store .*, nor a database \(no engram\.json, and not empty\)",
    ):
        engramsql.connect(tmp_path)
    with pytest.raises(engram_errors.EngramError, match=r"notes\.txt"):
        engramsql.connect(tmp_path / "notes.txt")


def test_failing_to_open_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello")
    before = set(os.listdir(tempfile.gettempdir()))
    with pytest.raises(engram_errors.SourceError):
        engramsql.connect(tmp_path)
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("engramsql-")}


def test_names_of_any_kind_are_relations(db: Database):
    for name in ["select", "A b", 'quo"te', "o'clock", "größe", "x;--"]:
        try:
            db.register(name, CHECKPOINT)
        except engram_errors.CatalogError:
            continue  # the catalog has its own rules for names
        quoted = '"' + name.replace('"', '""') + '"'
        assert count(db, quoted) == ROWS
        db.drop(name)
        with pytest.raises(duckdb.Error):
            count(db, quoted)


def test_registering_and_dropping_show_at_once(db: Database):
    other = db.connection.cursor()
    db.register("again", CHECKPOINT)
    assert other.sql("SELECT count(*) FROM again").fetchall() == [(ROWS,)]
    db.drop("again")
    with pytest.raises(duckdb.CatalogException):
        other.sql("SELECT count(*) FROM again")
    with pytest.raises(engram_errors.UnknownTableError, match="again"):
        db.drop("again")
    with pytest.raises(engram_errors.CatalogError, match="ple"):
        db.register("PLE", CHECKPOINT)


def test_sql_and_another_database_change_the_same_catalog(tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as one, engramsql.connect(tmp_path / "db") as two:
        one.execute(f"CALL engram_register('ple', '{CHECKPOINT}')")
        assert count(one, "ple") == ROWS
        assert count(two, "ple") == ROWS
        assert two.table("ple").rows == ROWS
        two.drop("ple")
        with pytest.raises(duckdb.Error):
            count(one, "ple")


def test_python_variables_are_relations_and_hide_no_table(db: Database):
    ple = pa.table({"x": [1]})
    assert count(db, "ple") == ROWS
    ids = pa.table({"rowid": [3, 1]})
    assert db.sql("SELECT sum(rowid) FROM ids").fetchall() == [(4,)]
    # Names that the package itself uses must not stand in the caller's way.
    errors = params = query = connection = annotations = sql = ids
    for name in ["errors", "params", "query", "connection", "annotations", "sql"]:
        assert count(db, name) == 2
    assert db.execute("SELECT count(*) FROM ids").fetchone() == (2,)
    assert all(relation.num_rows for relation in (ple, errors, params, query, connection, annotations, sql))


def test_parameters_by_position_and_name(db: Database):
    assert db.sql("SELECT ? + 1", [1]).fetchall() == [(2,)]
    assert db.sql("SELECT $a + 1", params={"a": 1}).fetchall() == [(2,)]
    assert db.execute("SELECT ?", [3]).fetchall() == [(3,)]


def test_results_are_arrow_and_stay_valid(db: Database):
    result = db.sql("SELECT rowid, embedding FROM ple WHERE rowid < 3 ORDER BY rowid").to_arrow_table()
    expected = db.table("ple").vectors([0, 1, 2])
    db.close()
    gc.collect()
    result.validate(full=True)
    np.testing.assert_array_equal(np.array(result["embedding"].to_pylist(), dtype=np.float32), expected)


def test_a_closed_database_leaves_nothing_for_the_exit():
    engramsql.connect().close()  # whatever the first one registers once
    callbacks, finalizers = atexit._ncallbacks(), set(weakref.finalize._registry)
    for _ in range(5):
        engramsql.connect().close()
    assert atexit._ncallbacks() == callbacks
    assert set(weakref.finalize._registry) <= finalizers


def test_closing_says_that_a_cursor_is_busy_and_ends_those_it_knows(tmp_path: Path):
    database = engramsql.connect()
    directory = database._temporary
    known, unknown = database.connection.cursor(), database.connection.cursor()
    paths = [tmp_path / "known", tmp_path / "unknown"]
    # Closing the pipes ends the queries, also of a test that fails.
    with ThreadPoolExecutor(2) as threads, ExitStack() as pipes:
        running = []
        for path, cursor in zip(paths, (known, unknown), strict=True):
            os.mkfifo(path)
            running.append(threads.submit(cursor.execute, f"FROM read_csv('{path}', columns = {{'a': 'INTEGER'}})"))
        # Opened as soon as the query has opened it for reading: both are busy from here on.
        writers = [pipes.enter_context(open(path, "w")) for path in paths]

        def end() -> None:
            writers[0].close()
            running[0].result()
            known.close()

        database.before_close(end)
        with pytest.raises(engram_errors.EngramError, match="closed but for a cursor of its connection"):
            database.close()
        database.close()
        assert directory is not None
        assert not os.path.exists(directory)
        assert [query.done() for query in running] == [True, False]
        writers[1].close()
        running[1].result()
        unknown.close()
    with pytest.raises(engram_errors.ClosedError):
        database.before_close(end)


def test_a_database_that_was_not_closed_is_removed_at_exit_by_its_own_process(tmp_path: Path):
    code = f"""
import os, weakref, engramsql
relation = engramsql.connect({str(CHECKPOINT)!r}).sql("SELECT count(*) FROM ple")
child = os.fork()
if child == 0:
    weakref.finalize._exitfunc()  # DuckDB does not survive the rest of an exit in a forked child
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert relation.fetchall() == [({ROWS},)]
assert len(os.listdir({str(tmp_path)!r})) == 1
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []


def test_a_relation_outlives_its_database_object():
    relation = engramsql.connect(CHECKPOINT).sql("SELECT count(*) FROM ple")
    gc.collect()
    assert relation.fetchall() == [(ROWS,)]


def test_an_open_reader_does_not_block_a_cursor(db: Database):
    reader = db.sql("SELECT rowid FROM ple").to_arrow_reader(100)
    reader.read_next_batch()
    assert db.connection.cursor().sql("SELECT 1").fetchall() == [(1,)]


def test_views_are_kept(tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as database:
        database.register("ple", CHECKPOINT)
        database.create_view("low", "SELECT rowid FROM ple WHERE rowid < 10; -- ten rows")
        database.create_view("lower", "SELECT * FROM low WHERE rowid < 5")
        assert [view.name for view in database.views()] == ["low", "lower"]
        assert count(database, "lower") == 5
    with engramsql.connect(tmp_path / "db", read_only=True) as database:
        assert count(database, "lower") == 5
        with pytest.raises(engram_errors.CatalogError, match="read-only"):
            database.drop_view("low")


def test_a_view_is_replaced_only_if_asked(db: Database):
    db.create_view("v", "SELECT 1 AS x")
    with pytest.raises(engram_errors.CatalogError, match="'v'"):
        db.create_view("v", "SELECT 2 AS x")
    assert db.sql("FROM v").fetchall() == [(1,)]
    db.create_view("v", "SELECT 2 AS x", replace=True)
    assert db.sql("FROM v").fetchall() == [(2,)]
    db.drop_view("v")
    with pytest.raises(engram_errors.EngramError, match="'v'"):
        db.drop_view("v")


def test_a_view_is_replaced_whatever_the_case_of_its_name(db: Database):
    db.create_view("v", "SELECT 1 AS x")
    db.create_view("V", "SELECT 2 AS x", replace=True)
    assert db.sql("FROM v").fetchall() == db.sql("FROM V").fetchall() == [(2,)]
    db.create_view("v", "SELECT 2 AS x", replace=True)
    assert db.sql("FROM V").fetchall() == [(2,)]
    assert [view.name for view in db.views()] == ["v"]
    db.drop_view("V")
    with pytest.raises(duckdb.CatalogException):
        db.sql("FROM v")


def test_threads_that_see_a_change_at_once_follow_it_one_by_one(tmp_path):
    """Two that make one view at a time would refuse each other inside DuckDB."""
    path, together = tmp_path / "db", threading.Barrier(4)
    with engramsql.connect(path) as db, engramsql.connect(path) as other, ThreadPoolExecutor(4) as pool:

        def query(_: int) -> None:
            together.wait(timeout=60)
            assert db.connection.cursor().execute("SELECT 42").fetchall() == [(42,)]

        names = [f"t{number}" for number in range(5)]
        for _ in range(20):
            # Several views to make or to drop keep a thread busy while the others come.
            for name in names:
                other.register(name, CHECKPOINT)
            list(pool.map(query, range(4)))
            for name in names:
                other.drop(name)
            list(pool.map(query, range(4)))


def test_a_view_must_not_take_a_tables_name(db: Database):
    for replace in (False, True):
        with pytest.raises(engram_errors.CatalogError, match="ple"):
            db.create_view("ple", "SELECT 1", replace=replace)
    assert count(db, "ple") == ROWS


@pytest.mark.parametrize("sql", ["", "SELECT 1; SELECT 2", "CREATE TABLE t (i INT)", "DROP VIEW ple", "-- nothing"])
def test_a_view_is_one_select(db: Database, sql: str):
    with pytest.raises(engram_errors.ArgumentError, match="exactly one SELECT"):
        db.create_view("v", sql)


def test_a_view_that_does_not_bind_is_not_kept(db: Database):
    variable = pa.table({"x": [1]})
    for sql in ["SELECT nope FROM ple", "SELECT * FROM nowhere", "SELECT * FROM variable"]:
        with pytest.raises(duckdb.Error):
            db.create_view("v", sql)
    assert db.views() == []
    assert count(db, "variable") == variable.num_rows  # variables are found again afterwards


def test_a_broken_view_does_not_stop_opening(tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as database:
        database.register("ple", CHECKPOINT)
        database.create_view("v", "SELECT * FROM ple")
        database.create_view("w", "SELECT 1 AS x")
        database.drop("ple")
    with pytest.warns(engram_errors.EngramWarning, match="view 'v' was left out: .*ple"):
        database = engramsql.connect(tmp_path / "db")
    with database:
        assert database.sql("FROM w").fetchall() == [(1,)]


def test_a_table_whose_files_are_gone_does_not_stop_opening(tmp_path: Path):
    source = tmp_path / "source"
    shutil.copytree(CHECKPOINT, source)
    with engramsql.connect(tmp_path / "db") as database:
        database.register("gone", source)
        database.register("ple", CHECKPOINT)
    shutil.rmtree(source)
    with engramsql.connect(tmp_path / "db") as database:
        assert [entry.name for entry in database.tables()] == ["gone", "ple"]
        assert count(database, "ple") == ROWS
        with pytest.raises(duckdb.Error, match="source"):
            count(database, "gone")
        with pytest.raises(engram_errors.SourceError, match="source"):
            database.table("gone")


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    paths = [directory, *directory.rglob("*")]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


def test_read_only_writes_nothing(tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as database:
        database.register("ple", CHECKPOINT)
    before = snapshot(tmp_path)
    with engramsql.connect(tmp_path / "db", read_only=True) as database:
        assert count(database, "ple") == ROWS
        database.table("ple").fetch([0])
        refusals = [
            lambda: database.register("x", CHECKPOINT),
            lambda: database.drop("ple"),
            lambda: database.create_view("v", "SELECT 1"),
        ]
        for refused in refusals:
            with pytest.raises(engram_errors.CatalogError, match="read-only"):
                refused()
        with pytest.raises(duckdb.Error, match="read-only"):
            database.execute("CALL engram_drop('ple')")
    assert snapshot(tmp_path) == before


def test_read_only_needs_a_database(tmp_path: Path):
    with pytest.raises(engram_errors.CatalogError, match="does not exist"):
        engramsql.connect(tmp_path / "none", read_only=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [None, ":memory:", CHECKPOINT], ids=str)
def test_a_read_only_temporary_database_refuses_changes(path: Path | str | None):
    with engramsql.connect(path, read_only=True) as database:
        for change in [
            lambda: database.register("x", CHECKPOINT),
            lambda: database.create_view("v", "SELECT 1"),
            lambda: database.drop("ple"),
        ]:
            with pytest.raises(engram_errors.CatalogError, match="read-only"):
                change()
        with pytest.raises(duckdb.Error, match="read-only"):
            database.execute(f"CALL engram_register('x', '{CHECKPOINT}')")


def test_a_closed_database_says_so(db: Database):
    db.close()
    db.close()
    assert repr(db) == "<Database ':memory:', closed>"
    for use in [db.tables, db.views, lambda: db.sql("SELECT 1"), lambda: db.table("ple"), lambda: db.connection]:
        with pytest.raises(engram_errors.ClosedError, match="is closed; open it again"):
            use()


def test_unknown_tables_are_named(db: Database):
    with pytest.raises(engram_errors.UnknownTableError, match="'pel'"):
        db.table("pel")


def test_a_path_is_a_table(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert db.table(CHECKPOINT).rows == ROWS
    shutil.copytree(CHECKPOINT, tmp_path / "s1")
    monkeypatch.chdir(tmp_path)
    assert db.table(Path("s1")).rows == db.table("./s1").rows == ROWS
    with pytest.raises(engram_errors.UnknownTableError, match="'s1'"):
        db.table("s1")


def test_options_are_checked_against_the_files(db: Database):
    with pytest.raises(engram_errors.SourceError, match="width"):
        db.register("x", CHECKPOINT, width=8)
    with pytest.raises(engram_errors.EngramError, match="format"):
        db.register("x", CHECKPOINT, format="bf16")
    assert [entry.name for entry in db.tables()] == ["ple"]


def test_a_newer_catalog_is_refused_by_name(tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as database:
        database.register("ple", CHECKPOINT)
    catalog = tmp_path / "db" / "engram.json"
    document = json.loads(catalog.read_text())
    (version,) = [key for key in document if "version" in key]
    document[version] += 1000
    catalog.write_text(json.dumps(document))
    with pytest.raises(engram_errors.CatalogError, match="version"):
        engramsql.connect(tmp_path / "db")


def test_a_panic_is_an_internal_error_and_the_process_lives_on():
    code = f"""
import engramsql
db = engramsql.connect({str(CHECKPOINT)!r})
table = db.table("ple")
for _ in range(3):
    try:
        table.fetch([0])
    except engramsql.errors.InternalError as error:
        assert "fault injected at 'gather'" in str(error), error
    else:
        raise SystemExit("no panic")
assert table.rows == {ROWS}
assert db.sql("SELECT 1").fetchall() == [(1,)]
"""
    environment = {**os.environ, "ENGRAMSQL_FAULT": "panic@gather"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_opening_a_catalog_runs_nothing_but_a_select(tmp_path):
    """The text of a view comes from a file that anyone may have written."""
    with engramsql.connect(tmp_path / "db") as db:
        db.create_view("v", "SELECT 1 AS a")
    catalog, proof = tmp_path / "db" / "engram.json", tmp_path / "proof.csv"
    hostile = f"SELECT 1; COPY (SELECT 'run') TO '{proof}'"
    catalog.write_text(catalog.read_text().replace("SELECT 1 AS a", hostile))
    with (
        pytest.warns(engram_errors.EngramWarning, match="view 'v' was left out"),
        engramsql.connect(tmp_path / "db") as db,
    ):
        assert db.sql("SELECT 42").fetchall() == [(42,)]
    assert not proof.exists()


def test_a_view_over_itself_is_refused_and_the_old_one_stays(tmp_path):
    with engramsql.connect(tmp_path / "db") as db:
        db.create_view("b", "SELECT 1 AS a")
        with pytest.raises(duckdb.Error, match="recursion"):
            db.create_view("b", "FROM b", replace=True)
        assert db.sql("FROM b").fetchall() == [(1,)]
    with engramsql.connect(tmp_path / "db") as db:
        assert db.sql("FROM b").fetchall() == [(1,)]


def test_a_table_hidden_by_another_relation_is_told(tmp_path):
    with engramsql.connect() as db:
        db.execute("CREATE TABLE mine AS SELECT 1 AS a")
        with pytest.warns(engram_errors.EngramWarning, match="'mine' is hidden"):
            db.register("mine", GOLDEN / "ckpt_qwen4_exp_fp8")


def test_settings_leave_an_open_result_alone():
    with engramsql.connect() as db:
        result = db.execute("FROM range(10000)")
        result.fetchmany(1)
        db.set_threads(1)
        db.set_ram_budget("64MB")
        assert len(result.fetchall()) == 9999
        db.set_ram_budget(None)


@pytest.mark.parametrize("path", [None, "db"])
def test_what_does_not_fit_in_memory_leaves_nothing_in_the_working_directory(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with engramsql.connect(path) as db:
        ((place,),) = db.sql("SELECT current_setting('temp_directory')").fetchall()
        assert tmp_path not in Path(place).parents
        before = sorted(tmp_path.rglob("*"))
        db.execute("SET memory_limit = '60MB'; SET threads = 1")
        found = db.execute(
            "SELECT sum(length(s)) FROM (SELECT i::VARCHAR || repeat('x', 100) AS s FROM range(1000000) AS t(i) "
            "ORDER BY hash(i) OFFSET 0)"
        )
        assert found.fetchone() == (105_888_890,)
        # It was used: 60 MB do not hold what is sorted.
        assert os.path.isdir(place)
        assert sorted(tmp_path.rglob("*")) == before
    assert not os.path.exists(place)
