"""The snapshot of the catalog: a real database, taken in the background on a connection of its own."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from checkpoints import make_qwen
from helpers import one, run_python
from oldest import run_oldest
from prompt_toolkit.completion import CompleteEvent, ThreadedCompleter
from prompt_toolkit.document import Document

import engramsql
from engramsql.shell.completion import Completion
from engramsql.shell.completion.catalog import Catalog, Column, Head, Snapshot, take
from engramsql.shell.completion.completer import completions
from engramsql.shell.completion.signatures import parse
from engramsql.shell.completion.tokens import Kind, scan


@pytest.fixture
def database(tmp_path: Path) -> Iterator[engramsql.Database]:
    make_qwen(tmp_path / "qwen")
    with engramsql.connect(tmp_path / "db") as database:
        database.register("ple", tmp_path / "qwen")
        database.create_view("norms", "SELECT rowid, head FROM ple")
        yield database


@pytest.fixture
def catalog(database: engramsql.Database) -> Iterator[Catalog]:
    catalog = Catalog(database)
    yield catalog
    catalog.close()


def fresh(catalog: Catalog, statement: str = "") -> Snapshot:
    catalog.refresh(statement)
    assert catalog.wait(60)
    assert catalog.failure is None
    return catalog.snapshot


def relations(snapshot: Snapshot) -> dict[str, str]:
    return {relation.name: relation.kind for relation in snapshot.relations}


def test_a_snapshot_has_tables_views_columns_functions_settings_and_heads(
    database: engramsql.Database, catalog: Catalog
):
    database.execute('CREATE TABLE corpus (tokens BIGINT[], "Order" INTEGER)')
    assert catalog.snapshot == Snapshot()
    snapshot = fresh(catalog)
    assert relations(snapshot) == {"ple": "table, 256 rows, 4 heads", "norms": "view", "corpus": "table"}
    columns = {relation.name: relation.columns for relation in snapshot.relations}
    assert columns["ple"] == (
        Column("rowid", "BIGINT"), Column("head", "INTEGER"), Column("embedding", "FLOAT[32]"), Column("row", "BLOB")
    )  # fmt: skip
    assert columns["corpus"] == (Column("tokens", "BIGINT[]"), Column("Order", "INTEGER"))
    assert snapshot.heads["ple"] == (Head(0, 2, 53), Head(1, 2, 59), Head(2, 3, 61), Head(3, 3, 67))
    assert {"engram_reader", "threads"} <= {setting.name for setting in snapshot.settings}
    assert {"BIGINT", "VARCHAR"} <= set(snapshot.types)
    assert {"select", "order"} <= snapshot.reserved
    assert not {"head", "row", "name"} & snapshot.reserved
    kinds = {
        "abs": "scalar", "sum": "aggregate", "read_csv": "table", "engram_row": "scalar", "engram_drop": "call"
    }  # fmt: skip
    assert {name: snapshot.functions[name].kind for name in kinds} == kinds
    assert not any(name.startswith("_") for name in snapshot.functions)


def test_every_function_of_the_registry_can_be_taken_apart(database: engramsql.Database, catalog: Catalog):
    snapshot = fresh(catalog)
    listed = database.sql("SELECT name, kind, signature FROM engram_functions()").fetchall()
    for name, kind, text in listed:
        if kind == "copy":
            continue
        function = snapshot.functions[name]
        assert function.ours
        assert function.signature.text == text
        assert function.description
        for form in function.signature.overloads:
            assert all(parameter.name.isidentifier() for parameter in form), text
        assert all(column.isidentifier() for column in function.signature.columns), text


@pytest.mark.parametrize(
    "name", ["engram_fetch", "engram_scan", "engram_embeddings", "engram_profile", "engram_row_norms"]
)
def test_columns_of_table_functions_are_those_they_return(database: engramsql.Database, name: str):
    ids = {"engram_fetch": ", [1]", "engram_embeddings": ", [1]"}.get(name, "")
    described = [column for column, *_ in database.sql(f"DESCRIBE FROM {name}('ple'{ids})").fetchall()]
    text = one(database, f"SELECT signature FROM engram_functions() WHERE name = '{name}'")
    signature = parse(text)
    assert signature is not None
    assert list(signature.columns) == described


def test_a_refresh_sees_what_was_made_renamed_and_dropped(database: engramsql.Database, catalog: Catalog):
    fresh(catalog)
    database.execute("CREATE TABLE one (a INTEGER)")
    database.create_view("two", "SELECT 1 AS b")
    database.execute("CREATE MACRO mine(x) AS x + 1")
    snapshot = fresh(catalog)
    assert {"one", "two"} < relations(snapshot).keys()
    assert "mine" in snapshot.functions
    database.execute("ALTER TABLE one RENAME TO uno")
    database.drop_view("two")
    assert {"one", "two"}.isdisjoint(relations(fresh(catalog)))
    assert "uno" in relations(catalog.snapshot)


def test_tables_that_another_connection_made_are_seen(database: engramsql.Database, catalog: Catalog):
    database.connection.cursor().execute("CREATE TABLE theirs (a INTEGER)")
    assert "theirs" in relations(fresh(catalog))


def test_tables_that_another_database_registered_are_seen(
    database: engramsql.Database, catalog: Catalog, tmp_path: Path
):
    with engramsql.connect(tmp_path / "db") as other:
        other.register("again", tmp_path / "qwen")
        other.create_view("theirs", "SELECT 1 AS one")
    assert "again" in fresh(catalog).tables
    database.sql("SELECT 1")  # as every statement does, it brings the views up to date
    assert {"again", "theirs"} <= relations(fresh(catalog)).keys()


def test_temporary_tables_and_use_are_seen_after_the_statement(database: engramsql.Database, catalog: Catalog):
    database.execute("CREATE TEMP TABLE mine (a INTEGER)")
    assert "mine" not in relations(fresh(catalog))
    assert relations(fresh(catalog, "CREATE TEMP TABLE mine (a INTEGER)"))["mine"] == "temporary table"
    database.execute("CREATE TEMP VIEW seen AS SELECT 1 AS a")
    assert relations(fresh(catalog, ".read made.sql"))["seen"] == "temporary view"
    database.execute("CREATE SCHEMA lab")
    database.execute("USE lab")
    assert fresh(catalog, "USE lab").schema == "lab"
    database.execute("USE main")
    assert fresh(catalog, "use main").schema == "main"


def test_materialised_views_are_known(database: engramsql.Database, catalog: Catalog):
    database.build_view("seen", "ple", [[1, 2, 3]])
    assert fresh(catalog).views.keys() == {"seen"}


def test_a_table_whose_files_are_gone_leaves_the_rest(database: engramsql.Database, tmp_path: Path):
    database.drop_view("norms")  # its absence is warned of
    (tmp_path / "qwen" / "model.safetensors").rename(tmp_path / "elsewhere")
    with engramsql.connect(tmp_path / "db") as reopened:
        snapshot = take(reopened.connection.cursor())
    assert snapshot.heads["ple"] == ()
    assert "ple" in snapshot.tables


def test_a_snapshot_that_fails_leaves_the_one_before(database: engramsql.Database, catalog: Catalog, tmp_path: Path):
    before = fresh(catalog)
    file = tmp_path / "db" / "engram.json"
    whole = file.read_bytes()
    file.write_text("{")
    catalog.refresh()
    assert catalog.wait(60)
    assert isinstance(catalog.failure, duckdb.Error)
    assert catalog.snapshot is before
    file.write_bytes(whole)
    assert fresh(catalog) == before


def test_a_running_query_is_not_waited_for_and_not_stopped(database: engramsql.Database, catalog: Catalog):
    started = threading.Event()
    ended: list[Exception] = []
    connection = database.connection

    def run() -> None:
        started.set()
        try:
            connection.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b").fetchall()
        except duckdb.Error as error:
            ended.append(error)

    query = threading.Thread(target=run)
    query.start()
    started.wait()
    try:
        assert "ple" in fresh(catalog).tables
        assert query.is_alive()
    finally:
        while query.is_alive():  # an interrupt before it began is lost
            connection.interrupt()
            query.join(0.05)
    assert isinstance(ended[0], duckdb.InterruptException)


def test_an_open_result_is_left_alone(database: engramsql.Database, catalog: Catalog):
    result = database.execute("SELECT * FROM range(100000)")
    assert result.fetchone() == (0,)
    fresh(catalog)
    assert len(result.fetchall()) == 99_999


def test_many_refreshes_end_with_the_last(database: engramsql.Database, catalog: Catalog):
    for number in range(20):
        database.execute(f"CREATE TABLE t{number} (a INTEGER)")
        catalog.refresh()
    assert catalog.wait(60)
    assert {f"t{number}" for number in range(20)} < relations(catalog.snapshot).keys()


def test_a_closed_catalog_keeps_its_snapshot_and_does_nothing(database: engramsql.Database, catalog: Catalog):
    before = fresh(catalog)
    catalog.refresh()
    catalog.close()
    catalog.close()
    assert catalog.wait(60)
    catalog.refresh()
    assert catalog.wait(0)
    assert relations(catalog.snapshot) == relations(before)


def test_a_forgotten_completion_ends_its_thread(database: engramsql.Database):
    completion = Completion(database, commands=[])
    worker = completion.catalog._worker
    del completion
    gc.collect()
    assert worker._closed
    assert worker.wait(60)


def test_a_snapshot_that_is_being_taken_does_not_hold_up_the_end_of_the_process(tmp_path: Path):
    done = run_python(
        """
        import engramsql
        from engramsql.shell.completion import Completion
        database = engramsql.connect()
        completion = Completion(database, commands=[])
        for _ in range(5):
            completion.refresh()
        """
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_the_database_may_be_closed_first(tmp_path: Path):
    done = run_python(
        """
        import engramsql
        from engramsql.shell.completion import Completion
        database = engramsql.connect()
        completion = Completion(database, commands=[])
        # DuckDB closes no connection of which a cursor is busy, and this one may be.
        database.close()
        completion.refresh("USE main")
        completion.close()
        """
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_completion_and_hint_use_the_snapshot(database: engramsql.Database):
    completion = Completion(database, commands=[])
    try:
        assert completion.catalog.wait(60)
        text = "SELECT * FROM engram_fetch('pl"
        assert completion.hint(text, len(text)).startswith("engram_fetch(*table*, rowids")
        assert completion.hint(text, len(text)).count("\n") == 1
        assert completion.hint("SELECT 1", 8) == ""
        assert completion.hint("SELECT nothing_known(", 21) == ""
        assert completion.hint("SELECT list_contains(", 21).startswith("list_contains(*")
        (entry,) = completions(text, len(text), completion.catalog.snapshot, [])
        assert (entry.text, entry.start_position, entry.display_meta_text) == ("ple'", -2, "table, 256 rows, 4 heads")
    finally:
        completion.close()


def test_columns_of_files_are_known_once_a_statement_names_them(database: engramsql.Database, tmp_path: Path):
    path = tmp_path / "it's.csv"
    path.write_text("token,share of all\n1,0.5\n")
    written = str(path).replace("'", "''")
    completion = Completion(database, commands=[])
    assert isinstance(completion.completer, ThreadedCompleter)
    completer = completion.completer.completer

    def offered(text: str) -> list[str]:
        document = Document(text, text.index("|"))
        asked = Document(text.replace("|", ""), document.cursor_position)
        list(completer.get_completions(asked, CompleteEvent(completion_requested=True)))
        assert completion.catalog.wait(60)
        found = completer.get_completions(asked, CompleteEvent(completion_requested=True))
        return [entry.text for entry in found][:2]

    try:
        assert offered(f"SELECT | FROM '{written}'") == ["token", '"share of all"']
        assert offered(f"SELECT f.| FROM '{written}' AS f") == ["token", '"share of all"']
        assert offered(f"SELECT | FROM read_csv('{written}', header = true)") == ["token", '"share of all"']
        assert offered(f"WITH c AS (FROM '{written}') SELECT | FROM c") == ["token", '"share of all"']
        assert offered(f"SELECT tok| FROM '{tmp_path}/*.csv'")[0] == "token"
        path.write_text("renamed\n1\n")
        os.utime(path, (1, 1))
        assert offered(f"SELECT ren| FROM '{written}'")[0] == "renamed"
        # What is no file, or none that DuckDB reads, is no failure; a pipe would be waited for.
        os.mkfifo(tmp_path / "pipe.csv")
        (tmp_path / "broken.parquet").write_text("none")
        for name in ("pipe.csv", "broken.parquet", "missing.csv"):
            assert "renamed" not in offered(f"SELECT ren| FROM '{tmp_path}/{name}'")
        assert completion.catalog.failure is None
    finally:
        completion.close()


def test_a_menu_cannot_turn_the_direction_of_writing(database: engramsql.Database):
    database.connection.execute('CREATE TEMP TABLE "\u202eevil" ("\x1bcolumn" INTEGER)')
    completion = Completion(database, commands=[])
    try:
        completion.refresh("CREATE TEMP TABLE")
        assert completion.catalog.wait(60)
        for text, cursor in (("SELECT * FROM ", 14), ('SELECT  FROM "\u202eevil"', 7)):
            labels = [entry.display_text for entry in completions(text, cursor, completion.catalog.snapshot, [])]
            assert all(map(str.isprintable, labels))
            assert any("evil" in label or "column" in label for label in labels)
    finally:
        completion.close()


def test_the_oldest_duckdb_gives_the_same(database: engramsql.Database, tmp_path: Path):
    code = f"""
import sys
sys.path += {[path for path in sys.path if "site-packages" in path]!r}
import duckdb, engramsql
from engramsql.shell.completion.catalog import take
with engramsql.connect({str(tmp_path / "db")!r}, read_only=True) as database:
    snapshot = take(database.connection.cursor())
    print(duckdb.__version__, [(r.name, r.kind, [c.name for c in r.columns]) for r in snapshot.relations])
    print(sorted(n for n, f in snapshot.functions.items() if f.ours), snapshot.heads["ple"][0].size)
"""
    first, second = run_oldest(code).splitlines()
    mine = take(database.connection.cursor())
    listed = [(r.name, r.kind, [c.name for c in r.columns]) for r in mine.relations]
    assert first.split(" ", 1) == ["1.5.6", str(listed)]
    assert second == f"{sorted(name for name, function in mine.functions.items() if function.ours)} 53"


def test_what_the_examples_name_is_offered_after_two_letters(database: engramsql.Database, tmp_path: Path):
    """Of every statement in the registry, each name and keyword is left to the completion once, and must be there."""
    for name in ("tuned", "engram"):
        database.register(name, tmp_path / "qwen")
    database.execute("CREATE TABLE corpus (id BIGINT, tokens BIGINT[])")
    database.build_view("seen", "ple", [[1, 2, 3]])
    snapshot = take(database.connection.cursor())
    names = {relation.name for relation in snapshot.relations} | snapshot.functions.keys()
    names |= {column.name.lower() for relation in snapshot.relations for column in relation.columns}
    names |= {column for function in snapshot.functions.values() for column in function.signature.columns}
    names |= {word.lower() for word in snapshot.keywords}
    asked, missing = 0, []
    for (text,) in database.sql("SELECT example FROM engram_functions()").fetchall():
        before = ""
        for token in scan(text):
            fresh = before == "AS"  # a new name
            before = token.upper
            if token.kind is not Kind.WORD or fresh or token.text.lower() not in names:
                continue
            asked += 1
            kept = min(2, len(token.text) - 1)
            cursor = token.start + kept
            entries = completions(text[:cursor] + text[token.end :], cursor, snapshot, [])
            offered = [entry.text.lower().rstrip("()=: ") for entry in entries]
            # GROUP BY and others are offered as one.
            if not any(token.text.lower() in (entry, *entry.split()) for entry in offered):
                missing.append((text[:cursor], token.text))
    assert asked > 200
    assert missing == []
