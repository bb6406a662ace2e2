"""Exports that are read while they are computed: the batches of a file, without the file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from export_readers import arrow_table
from golden_data import GOLDEN
from helpers import refuses, run_python

import engramsql
from engramsql.errors import ArgumentError, StorageError, TokenIdError
from engramsql.export.files import source as sources
from engramsql.export.files.pipeline import computed

# Several batches of each.
SMALL_BATCH = 1 << 18
TOKENS = 5000


@pytest.fixture
def tokens() -> Any:
    return np.random.default_rng(11).integers(0, 512, TOKENS)


@pytest.fixture
def ple(golden_db: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The golden tables, read in small batches."""
    monkeypatch.setattr(sources, "BATCH_BYTES", SMALL_BATCH)
    return golden_db


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("fp8", {}),
        ("v41_l1", {"values": "bfloat16"}),
        ("nvfp4", {"values": "row", "columns": ["row", "rowid"]}),
        ("fp8", {"ids": [[5], [None], [3], [1407], [5]], "columns": ["ord", "rowid", "embedding"]}),
        ("fp8", {"tokens": "corpus"}),
        ("fp8", {"tokens": "corpus", "per": "sequence", "values": "bfloat16", "history": [7, 8]}),
        ("bf16", {"tokens": "corpus", "values": "float16", "round": True}),
    ],
)
def test_the_stream_has_the_records_of_a_file(ple: Any, tmp_path: Path, tokens: Any, name: str, how: Any) -> None:
    how = dict(how)
    if "tokens" in how:
        how["tokens"] = [part.tolist() for part in np.split(tokens, [1, 3000])]
    if "ids" in how:
        how["ids"] = pa.array([value for (value,) in how["ids"]], pa.int64())
    ple.export(name, tmp_path / "records.arrows", **how)
    expected = arrow_table(tmp_path / "records.arrows")
    reader = ple.arrow_reader(name, **how)
    assert reader.schema.equals(expected.schema, check_metadata=True)
    batches = list(reader)
    assert {batch.schema.equals(expected.schema, check_metadata=True) for batch in batches} == {True}
    # All of them are kept until here: none was computed into the memory of another.
    assert pa.Table.from_batches(batches, reader.schema).equals(expected)


def addresses(reader: pa.RecordBatchReader, kept: list[Any] | None = None) -> list[int]:
    found = []
    for batch in reader:
        found.append(batch.column("e_t").flatten().buffers()[1].address)
        if kept is not None:
            kept.append(batch)
    return found


def test_memory_is_used_again_when_nobody_has_it(ple: Any, tokens: Any) -> None:
    corpus = np.tile(tokens, 4)
    given_back = addresses(ple.arrow_reader("fp8", tokens=corpus))
    assert len(given_back) > 700
    # What is computed ahead, and what was just read: batches take a megabyte here, of 48 that are ahead.
    assert len(set(given_back)) < 60
    kept: list[Any] = []
    assert len(set(addresses(ple.arrow_reader("fp8", tokens=corpus), kept))) == len(kept) == len(given_back)


def test_a_batch_that_is_kept_keeps_no_other(golden_db: Any) -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    batches = list(golden_db.arrow_reader("fp8", tokens=np.zeros(40_000, np.int64)))
    size = sum(batch.nbytes for batch in batches)
    assert size > 400_000_000
    before = resident()
    last = batches.pop()
    batches.clear()
    assert before - resident() > size - 4 * last.nbytes - (48 << 20)


def test_a_part_of_a_batch_stays_what_it_was(ple: Any, tokens: Any) -> None:
    reader = ple.arrow_reader("fp8", tokens=tokens, columns=["e_t"])
    first = reader.read_next_batch().column("e_t").slice(3, 2)
    for _ in reader:
        pass
    del reader
    expected = ple.table("fp8").e_t(tokens[:5])[3:]
    assert np.array_equal(first.flatten().to_numpy().view(np.uint32), expected.reshape(-1).view(np.uint32))


def test_others_take_the_stream(ple: Any, tokens: Any) -> None:
    reader = ple.arrow_reader("fp8", tokens=tokens)
    assert reader is not None
    query = "SELECT count(*), sum(token_id), max(len(e_t)) FROM reader"
    assert ple.connection.sql(query).fetchall() == [(TOKENS, tokens.sum(), 2560)]
    frame = pl.from_arrow(ple.arrow_reader("fp8", tokens=tokens, values="row"))
    assert isinstance(frame, pl.DataFrame)
    stored = ple.table("fp8").fetch(ple.table("fp8").spec.rowids(tokens))
    assert b"".join(frame["record"]) == stored.tobytes()


def test_what_is_refused(ple: Any) -> None:
    refuses(lambda: ple.arrow_reader(ple.sql("SELECT 1")), "to_arrow_reader()")
    refuses(lambda: ple.arrow_reader("SELECT 1"), "db.sql(...)")
    refuses(lambda: ple.arrow_reader("nowhere"), "nowhere")
    with pytest.raises(ArgumentError, match="give tokens or ids, not both"):
        ple.arrow_reader("fp8", tokens=[[1]], ids=[1])
    with pytest.raises(ArgumentError, match="no column 'embedding'"):
        ple.arrow_reader("fp8", tokens=[[1]], columns=["embedding"])


def test_an_error_comes_where_the_batch_would_have_come(ple: Any) -> None:
    # A corpus is looked at in pieces of a million tokens.
    corpus = np.zeros(3_000_000, np.int64)
    corpus[2_900_000] = 512
    reader = ple.arrow_reader("fp8", tokens=corpus, columns=["token"])
    batches: list[pa.RecordBatch] = []
    with pytest.raises(TokenIdError, match="token id 512 at position 2900000 is outside the vocabulary"):
        batches.extend(reader)
    assert 1_000_000 <= sum(batch.num_rows for batch in batches) <= 2_900_000
    # In a query the words are the same.
    reader = ple.arrow_reader("fp8", tokens=corpus, columns=["token"])
    with pytest.raises(duckdb.Error, match="token id 512 at position 2900000 is outside the vocabulary"):
        ple.connection.sql("SELECT count(*) FROM reader").fetchall()


def test_a_table_that_changes_meanwhile_is_an_error_in_the_end(db: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    rows = store / "shard_000.bin"
    np.zeros((20000, 32), np.uint8).tofile(rows)
    db.register("t", store, width=32, format="fp8_e4m3", scale=1.0)
    reader = db.arrow_reader("t", columns=["rowid"])
    reader.read_next_batch()
    os.utime(rows, ns=(1, 1))
    with pytest.raises(StorageError, match="modified since the table was opened|changed while it was exported"):
        reader.read_all()


def working() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("engramsql-export")]


def test_a_reader_that_is_dropped_ends_its_threads(ple: Any, tokens: Any) -> None:
    reader = ple.arrow_reader("fp8", tokens=np.tile(tokens, 10))
    assert working() == []
    reader.read_next_batch()
    assert working() != []
    del reader
    assert working() == []


def numbers(*sizes: int) -> sources.Source:
    """Batches of one number each, computed in memory of these sizes."""
    schema = pa.schema([("number", pa.int64())])

    def tasks(first: int, rows_per_file: int) -> Iterator[sources.Task]:
        for number, size in enumerate(sizes):
            record = pa.record_batch([pa.array([number])], schema=schema)
            yield sources.Task(size, lambda memory, record=record: record, number)  # type: ignore[misc]

    return sources.Source("table", schema, tasks, len(sizes), {})


def test_memory_that_the_system_does_not_have_is_an_error_in_its_place() -> None:
    with computed(numbers(8, 8, 1 << 55, 8)) as batches:
        assert [next(batches).batch.column("number")[0].as_py() for _ in range(2)] == [0, 1]
        with pytest.raises(OSError, match="Cannot allocate memory"):
            next(batches)
    assert working() == []


def test_a_reader_that_is_collected_by_a_thread_of_its_own_ends_them() -> None:
    """Whoever waited there for that thread would wait for ever."""
    code = """
        import threading
        import pyarrow as pa
        from engramsql.export.files.reading import reader
        from engramsql.export.files.source import Source, Task

        schema = pa.schema([("number", pa.int64())])
        readers, first_is_read, taken = [], threading.Event(), []

        def tasks(first, rows_per_file):
            for number in range(1000):
                if number == 1:
                    first_is_read.wait()
                    # As the collector does with a cycle that has a reader in it.
                    readers.clear()
                taken.append(number)
                record = pa.record_batch([pa.array([number])], schema=schema)
                yield Task(8, lambda memory: record, number)

        readers.append(reader(Source("table", schema, tasks, 0, {}), schema, None))
        print(readers[0].read_next_batch().num_rows)
        first_is_read.set()
        for thread in threading.enumerate():
            if thread.name.startswith("engramsql-export"):
                thread.join()
        print(len(readers), taken)
    """
    done = run_python(code, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n0 [0, 1]\n", "", 0)


def test_progress_counts_tokens(ple: Any, tokens: Any) -> None:
    seen: list[tuple[str, int, int]] = []
    ple.arrow_reader("fp8", tokens=tokens, progress=lambda *step: seen.append(step)).read_all()
    assert seen[-1] == ("reading", TOKENS, TOKENS)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_program_ends_with_a_reader_that_is_half_read() -> None:
    """Threads that wait for somebody to go on reading would keep the process for ever."""
    code = """
        import sys
        import numpy as np
        import engramsql
        db = engramsql.connect()
        db.register("ple", sys.argv[1])
        reader = db.arrow_reader("ple", tokens=np.zeros(200_000, np.int64))
        print(reader.read_next_batch().num_rows > 0)
    """
    done = run_python(code, args=[str(GOLDEN / "ckpt_qwen4_exp_fp8")], timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_a_reader_outlives_its_database(tokens: Any) -> None:
    with engramsql.connect() as db:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        reader = db.arrow_reader("ple", tokens=tokens)
    assert reader.read_all().num_rows == TOKENS
