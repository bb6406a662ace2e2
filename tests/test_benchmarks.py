"""The measuring code itself: the cold rule, VOID, A B B A, probes, arguments, the document. No timing is judged."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import refuses

from engramsql import cli
from engramsql.bench import (
    budget,
    building,
    child,
    cold,
    decoding,
    hashing,
    hot,
    inspecting,
    keyed,
    measure,
    memory,
    options,
    own_table,
    peers,
    report,
    run,
    slot_index,
    sql,
    views,
)
from engramsql.bench.measure import Contender, Result, Section, Void
from engramsql.bench.target import Target, open_target
from engramsql.engine import Probe, Session, Spec, probe_rate

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The own test table, small."""
    return own_table.own_database(tmp_path_factory.mktemp("bench"), replace(own_table.PLE, shards=2, shard_rows=10_000))


@pytest.fixture
def target(own: Path) -> Target:
    return _target(db=str(own))


@pytest.fixture
def unmapped(tmp_path: Path) -> Path:
    """A table of its own: no other test of this process maps it."""
    return own_table.own_database(tmp_path / "unmapped", replace(own_table.PLE, shards=2, shard_rows=10_000))


def _target(db: str | None = None, table: str | None = None) -> Target:
    with open_target(argparse.Namespace(db=db, table=table, dir="unused", measurements=["hot"])) as found:
        return found


def _parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="engramsql bench")
    options.build(parser)
    parsed = parser.parse_args(arguments)
    parsed.measurements, parsed.table = options._split(parsed.words, parser)
    return parsed


# The rules.


@pytest.mark.parametrize(
    ("first", "again", "rows", "proved"),
    [
        (5.0, 1.0, 10**9, True),
        (4.9, 1.0, 10**9, False),
        (3e-6, 1e-6, 1, True),
        (2.9e-6, 1e-6, 1, False),
        (1.0, 0.97, 10**4, True),
    ],
)
def test_cold_rule(first: float, again: float, rows: int, proved: bool) -> None:
    assert measure.is_cold(first, again, rows) is proved


def test_a_b_b_a_throws_the_first_calls_away_and_asks_for_the_path_after_all() -> None:
    order: list[str] = []

    def contender(name: str) -> Contender:
        return Contender(
            Result(name, name, "row", 1), lambda: lambda: order.append(name), lambda: f"{name}{len(order)}"
        )

    a, b = contender("a"), contender("b")
    measure.a_b_b_a([a, b], 2)
    assert order == ["a", "b", *["a", "b", "b", "a"] * 2]
    assert len(a.result.seconds) == len(b.result.seconds) == 4
    assert (a.result.code_path, b.result.code_path) == ("a10", "b10")


def test_a_call_may_keep_time_itself() -> None:
    assert measure.timed(lambda: 123.0) == 123.0
    assert measure.timed(lambda: None) < 123.0


def test_results_state_the_median_and_how_much_faster_they_are() -> None:
    ours = Result("fetch", "engramsql", "row", 10, seconds=[1e-5, 3e-5, 2e-5])
    limit = Result("limit: loop, 10 rows", "limit", "row", 10, seconds=[1e-5])
    ours.compare([limit, Result("torch, 10 rows", "torch", "row", 10, seconds=[4e-5])])
    record = ours.record()
    assert record["median_us"] == pytest.approx(2)
    assert (record["lowest_us"], record["highest_us"]) == (pytest.approx(1), pytest.approx(3))
    assert record["per_second"] == pytest.approx(5e5)
    assert record["ratios"] == {"limit: loop, 10 rows": pytest.approx(0.5), "torch": pytest.approx(2)}


def test_pages_of_a_mapped_file_cannot_be_dropped(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(bytes(8192))
    measure.drop_pages([str(file)])
    assert measure.mapped_bytes([str(file)]) == (0, 0)
    mapped = np.memmap(file, np.uint8, "r")
    assert mapped.max() == 0
    assert measure.mapped_bytes([str(file)]) == (8192, 0)
    with pytest.raises(Void, match="is mapped"):
        measure.drop_pages([str(file)])
    assert len(mapped) == 8192


# VOID.


def test_a_warm_read_called_cold_is_void_and_nothing_is_published(
    unmapped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The pages stay, so the first read is as warm as the second; many rows, so that page faults of a map do not count.
    for file in _target(db=str(unmapped)).files():
        Path(file).read_bytes()
    monkeypatch.setattr(cold, "drop_pages", lambda files: None)
    monkeypatch.setenv("ENGRAMSQL_READER", "mapped")
    document = tmp_path / "results.json"
    arguments = ["bench", "cold", "--db", str(unmapped), "--rows", "200000", "--repeats", "2", "--json", str(document)]
    assert cli.main(arguments) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("VOID: engramsql, 200000 rows: ")
    assert len(captured.err.splitlines()) == 1
    assert not document.exists()


def test_only_the_probe_is_exempt(unmapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = _target(db=str(unmapped))

    def answered(*arguments: Any, **more: Any) -> SimpleNamespace:
        return SimpleNamespace(returncode=0, stdout='{"first": 1e-3, "again": 1e-3, "path": "p"}', stderr="")

    monkeypatch.setattr(child.subprocess, "run", answered)
    assert cold._read(target, "probe", 16)["path"] == "p"
    for reader in ("engramsql", "engramdb", "numpy"):
        with pytest.raises(Void, match=f"{reader}, 16 rows"):
            cold._read(target, reader, 16)


def test_a_table_of_two_parts_per_row_counts_its_shards_once() -> None:
    target = _target(db=str(GOLDEN / "ckpt_deepseek_v41"), table="engram_l1")
    assert len(target.parts) == 2
    assert target.record()["shards"] == 1


@pytest.mark.parametrize("measurement", ["cold", "limits"])
def test_holes_are_void(measurement: str, unmapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = _target(db=str(unmapped))
    measure.refuse_holes(target.parts)
    file = Path(target.files()[1])
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(size // 2)
        opened.truncate(size)
    assert cli.main(["bench", measurement, "--db", str(unmapped), "--rows", "16", "--repeats", "1"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"VOID: '{file}' is a sparse file: only ")
    assert len(captured.err.splitlines()) == 1


def test_a_small_table_is_named_as_a_cause_of_void(unmapped: Path) -> None:
    target = _target(db=str(unmapped))
    assert "3.2 MB the table may be too small" in cold._too_small(target)
    assert cold._too_small(replace(target, rows=10**9)) == ""


def test_threads_are_those_that_read() -> None:
    assert [hot.thread_counts(rows, 8) for rows in (1, 65535, 65536, 10**6)] == [[1], [1], [1, 2], [1, 8]]
    assert hot.thread_counts(10**6, 1) == [1]


def test_a_child_that_fails_is_an_error_with_its_last_line(unmapped: Path) -> None:
    target = _target(db=str(unmapped))
    broken = Target(**{**asdict(target), "name": "no such table"})
    refuses(lambda: cold._read(broken, "engramsql", 16), "cold read of 16 rows by engramsql", "no such table")


# The probes.


def test_probes_read_exactly_the_rows(target: Target) -> None:
    rows = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, target.row_bytes) for f in target.files()])
    ids = np.random.default_rng().integers(0, target.rows, 500)
    ids[:2] = 0, target.rows - 1
    probe = Probe(target.extents())
    out = np.zeros((len(ids), target.row_bytes), np.uint8)
    for executor in (None, "threads"):
        for sector in {probe.sector, 4096}:
            out[:] = 0
            reading = probe.random(ids, out, depth=16, sector=sector, executor=executor)
            assert np.array_equal(out, rows[ids])
            assert reading.reads == len(ids)
            assert reading.bytes % sector == 0
            assert reading.seconds > 0
    for threads in (1, 2):
        out[:] = 0
        reading = probe.gather(ids, out, threads=threads)
        assert np.array_equal(out, rows[ids])
        assert "copy loop" in reading.path


def test_probes_read_rows_of_two_parts(db: Any) -> None:
    db.register("v41", GOLDEN / "ckpt_deepseek_v41")
    table = db.table("v41_l1")
    ids = np.arange(table.rows, dtype=np.int64)[::-1].copy()
    out = np.zeros((len(ids), table.row_bytes), np.uint8)
    probe = Probe(table.shards())
    probe.random(ids, out)
    assert np.array_equal(out, table.fetch(ids))
    out[:] = 0
    probe.gather(ids, out)
    assert np.array_equal(out, table.fetch(ids))


def test_probes_refuse_what_has_no_meaning(target: Target) -> None:
    probe = Probe(target.extents())
    out = np.zeros((1, target.row_bytes), np.uint8)
    refuses(lambda: probe.random(np.array([target.rows]), out), str(target.rows))
    refuses(lambda: probe.random(np.array([0]), out, executor="magic"), "magic", "io_uring")  # type: ignore[arg-type]
    refuses(lambda: probe.random(np.array([0]), out, sector=100), "100")
    refuses(lambda: probe.gather(np.array([0, 1]), out), "output holds")
    refuses(lambda: probe.sequential(0, 1, block=1 << 25, depth=8), "smaller than one block")
    refuses(lambda: probe_rate("widen", "disk"), "disk")  # type: ignore[arg-type]
    refuses(lambda: probe_rate("nvfp4", "cache", row_bytes=1, scale=1.0), "nvfp4")
    refuses(lambda: Probe([]), "without rows")


def test_fp8_agrees_with_its_definition() -> None:
    decoding.check_fp8()
    assert decoding.e4m3_values()[[0x38, 0x7E, 0x01, 0xB8]].tolist() == [1.0, 448.0, 2.0**-9, -1.0]


def test_the_numpy_hash_agrees_with_the_engine() -> None:
    spec = Spec.released_qwen_ple()
    ids = np.random.default_rng().integers(0, spec.vocab_size, 500)
    ids[[0, 3, 4, 100, 102, 499]] = 248_044
    assert np.array_equal(hashing.numpy_rowids(spec, ids, 248_044), spec.rowids(ids))


# Serving.


@pytest.mark.parametrize(
    ("read_us", "layer_us", "layers"),
    [(0.0, 50.0, 0), (0.1, 50.0, 1), (50.0, 50.0, 1), (50.1, 50.0, 2), (149.9, 50.0, 3), (1934.0, 62.0, 32)],
)
def test_lead_time_rule(read_us: float, layer_us: float, layers: int) -> None:
    assert budget.layers_ahead(read_us, layer_us) == layers


def _cold_section(seconds: list[float]) -> Section:
    step = Result("Table.fetch, 16 rows", "engramsql", "row", 16, seconds=seconds)
    probe = Result("limit: single sectors, 16 rows", "limit", "row", 16, seconds=[1.0])
    many = Result("Table.fetch, 8192 rows", "engramsql", "row", 8192, seconds=[8192e-6])
    few = Result("Table.fetch, 8 rows", "engramsql", "row", 8, seconds=[1e-3])
    return Section("cold", "", [step, probe, many, few])


@pytest.mark.parametrize(("layer", "passes"), [(0, False), (3, False), (4, True), (40, True)])
def test_a_layer_needs_as_many_layers_before_it(layer: int, passes: bool) -> None:
    lead = budget.lead_time(_cold_section([200e-6, 160e-6, 300e-6]), 16, 50.0, layer)
    assert (lead["layers_ahead"], lead["layers_ahead_of_the_slowest"]) == (4, 6)
    assert lead["passes"] is passes
    assert lead["slowest_passes"] is (layer >= 6)


def test_budget_is_heads_times_a_row() -> None:
    lines = budget.per_token(_cold_section([200e-6]), 16, 100.0)
    assert [line["rows"] for line in lines] == [16, 8192]
    assert [line["us_per_token"] for line in lines] == [pytest.approx(200), pytest.approx(16)]
    assert [line["passes"] for line in lines] == [False, True]
    assert [line["slowest_passes"] for line in lines] == [False, True]
    assert lines[1]["tokens"] == 512


def test_the_slowest_call_has_a_verdict_of_its_own() -> None:
    (step, _) = budget.per_token(_cold_section([90e-6, 95e-6, 300e-6]), 16, 100.0)
    assert (step["passes"], step["slowest_passes"]) == (True, False)
    lead = budget.lead_time(_cold_section([50e-6, 40e-6, 300e-6]), 16, 50.0, 1)
    printed = report._serving({"budget": {"budget_us": 100.0, "heads": 16, "per_token": [step]}, "lead_time": lead})
    assert [" ".join(line.split()) for line in printed if line.startswith("      ")] == [
        "median pass 95.0 us per token",
        "slowest FAIL 300.0 us per token",
        "median pass 50.0 us, so it must start 1 layer ahead",
        "slowest FAIL 300.0 us, so it must start 6 layers ahead",
    ]


def test_lines_fit_the_width() -> None:
    long = Result("a name " * 12, "engramsql", "row", 1, "by a code path " * 20, [1e-3], {"limit: loop, 16 rows": 0.5})
    short = Result("short", "limit", "row", 16, "path", [1e-3])
    printed = report._table([long, short])
    assert max(map(len, printed)) <= report.WIDTH
    assert len({line.rindex("us/row") for line in printed if "us/row" in line}) == 1
    assert any("0.50 x loop" in line for line in printed)


# The command.


def test_measurements_come_first_and_run_cold_first() -> None:
    every = list(options.MEASUREMENTS)
    assert every[0] == "cold"
    reading = [name for name in every if name not in options.ASKED]
    assert (_parsed().measurements, _parsed().table) == (reading, None)
    assert (_parsed("ple").measurements, _parsed("ple").table) == (reading, "ple")
    assert (_parsed("all", "hot").measurements, _parsed("all", "hot").table) == (every, "hot")
    assert (_parsed("hot,cold", "ple").measurements, _parsed("hot,cold", "ple").table) == (["cold", "hot"], "ple")
    assert _parsed("hot", "--rows", "256,16,16").rows == [16, 256]
    assert _parsed("--against", "numpy", "--against", "torch").against == ["numpy", "torch"]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["warm", "ple"], "no measurement 'warm'"),
        (["hot,warm"], "no measurement"),
        (["hot", "a", "b"], "unexpected 'b'"),
        (["cold", "--layer", "3"], "belong together"),
        (["cold", "--layer-us", "3"], "belong together"),
        (["hot", "--budget-us", "3"], "no budget for a cold read"),
        (["sql", "--against", "numpy"], "have no peers"),
        (["--rows", "0"], "no number of at least 1"),
        (["--rows", "1,x"], "no number of at least 1"),
        (["--repeats", "-1"], "no number of at least 1"),
        (["--budget-us", "nan"], "microseconds"),
        (["--layer-us", "0", "--layer", "1"], "microseconds"),
        (["--against", "sqlite"], "invalid choice"),
    ],
)
def test_wrong_arguments_are_usage_errors(
    arguments: list[str], fragment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        cli.main(["bench", *arguments])
    assert e.value.code == 2
    assert fragment in capsys.readouterr().err


def _fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["bench", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    return captured.err


def test_a_table_that_is_not_there(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "needs --db" in _fails(capsys, "hot", "nothing-here")
    known = "cold, limits, hot, hash, decode, sql, build, views, index, keyed, export, inspect"
    assert f"nor a measurement ({known})" in _fails(capsys, "hott")
    assert "nor is 'hott' a measurement (cold, limits" in _fails(capsys, "hott", "--db", str(own))
    assert "give it as --db" in _fails(capsys, "hot", str(own))
    assert "is no database" in _fails(capsys, "hot", "--db", str(tmp_path))
    assert "other" in _fails(capsys, "hot", "other", "--db", str(own))
    several = tmp_path / "db"
    Session.open(several, create=True).register("v41", GOLDEN / "ckpt_deepseek_v41")
    assert "v41_l1, v41_l3" in _fails(capsys, "hot", "--db", str(several))
    checkpoint = str(GOLDEN / "ckpt_deepseek_v41")
    for arguments in (["hot", checkpoint], ["hot", "--db", checkpoint]):
        message = _fails(capsys, *arguments)
        assert "several tables" in message
        # What it says to write works.
        assert f"engramsql bench hot engram_l1 --db {checkpoint}\n" in message
    assert cli.main(["bench", "hot", "engram_l1", "--db", checkpoint, "--rows", "4", "--repeats", "1"]) == 0
    assert "in 1 shard," in capsys.readouterr().out
    assert "does not exist" in _fails(capsys, "hot", "--db", str(own), "--json", str(tmp_path / "no" / "file.json"))


def test_results_go_to_a_pipe_and_through_a_link_without_replacing_either(tmp_path: Path) -> None:
    pipe, file, link = tmp_path / "pipe", tmp_path / "file.json", tmp_path / "link.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run._write(pipe, {"schema": 1})
        assert json.loads(os.read(reader, 1000)) == {"schema": 1}
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    link.symlink_to(file.name)
    run._write(link, {"schema": 2})
    assert link.is_symlink()
    assert json.loads(file.read_text()) == {"schema": 2}
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "file.json", "link.json"}


def test_results_that_cannot_be_written_are_refused_before_measuring(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is a directory" in _fails(capsys, "hot", "--db", str(own), "--json", str(tmp_path))
    assert "is a directory" in _fails(capsys, "hot", "--db", str(own), "--json", "")


def test_a_batch_that_no_memory_holds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        cli.main(["bench", "hot", "--rows", "16,99999999999999999999"])
    assert refused.value.code == 2
    assert "'99999999999999999999' is more than 67108864" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_named(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    for name, package in options.PEERS.items():
        assert f"pip install {package}\n" in _fails(capsys, "hot", "--db", str(own), "--against", name)


@pytest.mark.parametrize("name", ["engramdb", "torch", "numpy", "arrow"])
@pytest.mark.parametrize("rows", [16, 8192])
def test_peers_read_the_same_rows(target: Target, name: str, rows: int) -> None:
    pytest.importorskip({"arrow": "pyarrow"}.get(name, name), exc_type=ImportError)
    ids = peers.fresh_ids(name, target, rows, target.hot_rows)
    assert ids.min() >= 0
    assert ids.max() < target.hot_rows
    out = np.zeros((rows, target.row_bytes), np.uint8)
    peer = peers.make_peer(name, target)
    answer: Any = peer.fetch(ids, out)()
    expected = target.open().fetch(ids)
    if name == "engramdb":
        assert bytes(answer) == expected.tobytes()
    elif name in ("torch", "numpy"):
        # In the order of the shards.
        order = np.argsort(ids >= target.parts[0]["rows"], kind="stable")
        assert np.array_equal(out, expected[order])


def test_the_document(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    arguments = [
        "bench",
        "hot,hash,decode",
        "--db",
        str(own),
        "--rows",
        "16,300",
        "--repeats",
        "1",
        "--json",
        str(path),
    ]
    assert cli.main([*arguments, "--against", "numpy", "--against", "arrow"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    document = json.loads(path.read_text())
    assert set(document) == {
        "schema", "started", "command", "machine", "versions", "load_average", "table", "measurements",
    }  # fmt: skip
    assert document["schema"] == run.SCHEMA
    assert document["table"]["rows"] == 20_000
    assert document["table"]["heads"] == 16
    assert {"engramsql", "duckdb", "numpy", "pyarrow"} <= set(document["versions"])
    assert list(document["measurements"]) == ["hot", "hash", "decode"]
    for measurement in document["measurements"].values():
        assert measurement["results"]
        for result in measurement["results"]:
            assert result["median_us"] > 0
            assert result["lowest_us"] <= result["median_us"] <= result["highest_us"]
            assert result["code_path"]
            assert result["name"] in captured.out
            assert result["role"] in ("engramsql", "limit", "numpy", "arrow")
    fetch = next(
        r
        for r in document["measurements"]["hot"]["results"]
        if r["name"] == "Table.fetch(ids, out=), 1 thread, 16 rows"
    )
    assert {"numpy", "arrow"} < set(fetch["ratios"])
    assert any("e_t" in result["name"] for result in document["measurements"]["decode"]["results"])
    assert str(os.cpu_count()) in captured.out


def test_cold_proves_itself_and_is_judged(unmapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a disk too quick for the rule the run must be VOID; anything else is wrong."""
    path = tmp_path / "results.json"
    serving = ["--budget-us", "1e9", "--layer-us", "1e9", "--layer", "1"]
    code = cli.main(
        ["bench", "cold", "--db", str(unmapped), "--rows", "48", "--repeats", "1", "--json", str(path), *serving]
    )
    captured = capsys.readouterr()
    if code == 3:
        assert captured.err.startswith("VOID: ")
        assert not path.exists()
        return
    assert code == 0
    document = json.loads(path.read_text())
    results = document["measurements"]["cold"]["results"]
    assert [result["units"] for result in results] == [16, 16, 48, 48]
    assert {result["proved_cold"] for result in results} == {"every read", "exempt: O_DIRECT"}
    assert all(len(result["again_us"]) == len(result["seconds"]) for result in results)
    assert [line["passes"] for line in document["budget"]["per_token"]] == [True, True]
    assert document["lead_time"]["layers_ahead"] == 1
    assert document["lead_time"]["passes"] is True
    assert captured.out.count("pass") == 6


def test_builds_are_measured_beside_a_copy_and_leave_nothing(unmapped: Path, tmp_path: Path) -> None:
    target = _target(db=str(unmapped))
    section = building.run(target, 1, tmp_path / "scratch")
    build, copy, verify, reading = section.results
    assert [build.role, copy.role, verify.role, reading.role] == ["engramsql", "limit"] * 2
    assert {len(result.seconds) for result in section.results} == {2}
    assert {result.units for result in section.results} == {target.rows * target.row_bytes}
    assert set(build.ratios) == {"limit: plain copy"}
    assert set(verify.ratios) == {"limit: plain reading"}
    # A whole interpreter with the engine, and no more than a few buffers.
    assert 10e6 < build.extra["peak_bytes"] < 256e6
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_copy_has_the_bytes_of_the_table(target: Target, tmp_path: Path) -> None:
    reading = Probe(target.extents()).copy(tmp_path / "copy", target.rows * target.row_bytes, block=4096)
    rows = b"".join(Path(file).read_bytes()[: Path(file).stat().st_size // 4096 * 4096] for file in target.files())
    assert (tmp_path / "copy").read_bytes() == rows
    assert reading.bytes == len(rows)
    # Of some tables more than a byte is written for each byte: blocks come several times, side by side.
    written = 5 * len(rows) // 2 // 4096 * 4096
    reading = Probe(target.extents()).copy(
        tmp_path / "copy", target.rows * target.row_bytes, block=4096, written=written
    )
    blocks = [rows[start : start + 4096] for start in range(0, len(rows), 4096)]
    total = written // 4096
    ends = [(index + 1) * total // len(blocks) for index in range(len(blocks))]
    times = np.diff([0, *ends]).tolist()
    assert set(times) == {2, 3}
    assert (tmp_path / "copy").read_bytes() == b"".join(block * n for block, n in zip(blocks, times, strict=True))
    assert reading.bytes == written


def test_views_are_measured_beside_rows(
    unmapped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a disk too quick for the rule the run must be VOID; anything else is wrong."""
    assert cli.main(["bench", "views", "--db", str(unmapped), "--repeats", "1"]) == 0
    assert "has no view" in capsys.readouterr().out
    monkeypatch.setattr(views, "_VIEW_TOKENS", 2000)
    views._own_view(unmapped)
    monkeypatch.setattr(views, "TOKENS", (1, 16))
    code = cli.main(["bench", "views", "--db", str(unmapped), "--repeats", "1"])
    captured = capsys.readouterr()
    if code == 3:
        assert captured.err.startswith("VOID: ")
        return
    assert code == 0
    assert "record by slot, 16 tokens" in captured.out
    assert "16 rows of 160 bytes" in captured.out


def test_the_slot_index_is_measured_beside_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_index, "SIZES", (3000,))
    monkeypatch.setattr(slot_index, "_PEER_KEYS", 3000)
    section = slot_index.run(["engramdb"], 1, tmp_path)
    names = [result.name for result in section.results]
    assert names[:2] == ["build, 3000 keys", "engramdb, build, 3000 keys"]
    assert "lookup, 3000 keys, batch 65536" in names
    assert all("engramdb" in result.ratios for result in section.results if result.role == "engramsql")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_the_user_is_measured_where_it_lies(capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted((file.name, file.stat().st_mtime_ns) for file in CHECKPOINT.iterdir())
    assert cli.main(["bench", "hot", str(CHECKPOINT), "--rows", "4", "--repeats", "1"]) == 0
    assert str(CHECKPOINT) in capsys.readouterr().out
    assert sorted((file.name, file.stat().st_mtime_ns) for file in CHECKPOINT.iterdir()) == before


def test_a_table_without_a_spec_has_no_budget(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Path(_target(db=str(own)).files()[0]).parent
    session = Session.open(tmp_path / "db", create=True)
    session.register("plain", store)
    assert "no hash spec" in _fails(capsys, "cold", "--db", str(tmp_path / "db"), "--budget-us", "1")
    assert cli.main(["bench", "decode", "--db", str(tmp_path / "db"), "--repeats", "1"]) == 0
    assert "no e_t" in capsys.readouterr().out


def test_only_the_own_table_is_dropped_to_be_read_anew(unmapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = _target(db=str(unmapped))
    dropped: list[list[str]] = []
    monkeypatch.setattr(hot, "drop_pages", dropped.append)
    hot.bring_in(given)
    assert dropped == []
    hot.bring_in(replace(given, own=True))
    assert dropped == [given.files()]
    table = given.open()
    hot.bring_in(replace(given, own=True))
    assert len(dropped) == 1
    assert table.rows == given.rows


def test_peers_sit_dense_cold_batches_out(unmapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int]] = []

    def answer(target: Target, reader: str, rows: int) -> dict[str, Any]:
        read.append((reader, rows))
        return {"first": 1.0, "again": 0.1, "path": "p"}

    monkeypatch.setattr(cold, "_read", answer)
    monkeypatch.setattr(cold, "BATCHES", (16, 10_000))
    target = _target(db=str(unmapped))
    section = cold.run(target, None, ["numpy"], 1)
    assert {rows for reader, rows in read if reader == "numpy"} == {16}
    assert {rows for reader, rows in read if reader == "engramsql"} == {16, 10_000}
    assert any("10000 rows are 50% of the table" in note for note in section.notes)
    read.clear()
    cold.run(target, [10_000], ["numpy"], 1)
    assert [reader for reader, _ in read] == ["engramsql", "probe", "numpy", "numpy", "probe", "engramsql"]


def test_sql_measures_what_it_says(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "ROWS", 3000)
    section = sql.run(target, 1, 1)
    names = [result.name for result in section.results if result.role == "engramsql"]
    assert [name for name, _, _ in sql.statements(target)] == names[:5]
    for result in section.results:
        if result.name.startswith("Arrow"):
            assert result.extra["result_bytes"] >= 3000 * target.row_bytes * 4
            assert result.extra["peak_over_result"] >= 0
        assert result.code_path


def test_keyed_measures_the_table_and_one_of_released_size(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "ROWS", 3000)
    monkeypatch.setattr(keyed, "JOINED", 500)
    section = keyed.run(target, 1, 1, tmp_path)
    (join,) = (result for result in section.results if "the scan" in result.ratios)
    assert join.name == "20000 rows: join of 500 random keys with the table"
    (lookup,) = (result for result in section.results if result.name.endswith("WHERE rowid = ?"))
    assert lookup.extra["p90_us"] <= lookup.highest_us
    # Both were measured, and rows were read for it by a path of the engine.
    assert lookup.extra["planner_us"] > 0
    assert lookup.code_path not in ("", "DuckDB")
    laterals = [result for result in section.results if "lateral" in result.name]
    assert [set(result.ratios) for result in laterals] == [{"native gather"}] * 4
    (arrow,) = (result for result in section.results if "Arrow" in result.name)
    assert arrow.extra["result_bytes"] >= 3000 * target.row_bytes * 4
    assert all(result.code_path and result.seconds for result in section.results)
    assert list(tmp_path.iterdir()) == []
    # The scan of the released size takes half a minute; its geometry has tests of its own.
    monkeypatch.setattr(keyed, "_released", lambda directory: target)
    both = keyed.run(replace(target, own=True), 1, 1, tmp_path)
    assert [result.name for result in both.results] == [result.name for result in section.results] * 2
    assert "says what planning" not in "".join(section.notes)
    assert "say what planning and finding cost" in "".join(both.notes)


def test_inspection_finds_what_was_planted_and_measures_it(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = replace(own_table.PLANTED, shards=2, shard_rows=5000, planted_every=100)
    monkeypatch.setattr(inspecting, "SHAPE", shape)
    monkeypatch.setattr(inspecting, "TOKENS", 3000)
    monkeypatch.setattr(inspecting, "PLANNED", 500)
    monkeypatch.setattr(inspecting, "_SECONDS", 0.001)
    section = inspecting.run(replace(_target(db=str(own)), own=True), 1, 1, tmp_path)
    asked = {result.name: result for result in section.results if result.role == "engramsql"}
    answers = {name: result.extra["answer"] for name, result in asked.items()}
    assert answers["engram_profile"][:4] == ["10000", "100", "100", "100"]
    assert answers["engram_histogram"] == ["1600000"]
    # All but those with a NaN as their only values, of which there are none.
    # Rows with a NaN have no norm.
    assert answers["engram_row_norms"][0] == "9900"
    assert answers["engram_dead_rows"] == ["100"]
    assert answers["engram_constant_rows"][0] == "100"
    assert answers["engram_nonfinite_rows"] == ["100", "100"]
    # All dead rows but the first, all constant rows but the first, and one of each pair.
    assert answers["engram_duplicate_rows"] == ["248"]
    assert answers["engram_scale_ranges"] == ["10000", "None"]
    # A changed value that is zero stays zero.
    assert 95 <= int(answers["engram_changed_rows"][0]) <= 100
    assert answers["engram_distance"][0] == answers["engram_drift"][0] == answers["engram_changed_rows"][0]
    assert answers["engram_coverage"][0] == answers["engram_head_load"][0] == answers["engram_reuse"][1] == "48000"
    assert answers["engram_plan"] == ["500"]
    for result in asked.values():
        assert len(result.seconds) == 2
        assert len(result.ratios) == 1
        assert result.code_path
        assert 10e6 < result.extra["own_peak_bytes"] <= result.extra["peak_bytes"]
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"db", "store"}


def test_a_table_of_the_user_is_asked_what_it_can_answer(tmp_path: Path) -> None:
    for table, asked in (("engram_l1", True), (None, False)):
        source = str(GOLDEN / "ckpt_deepseek_v41") if table else str(_plain(tmp_path / "store"))
        names = {question.name for question in inspecting.questions(_target(db=source, table=table))}
        assert {"engram_duplicate_rows", "engram_plan"} <= names
        assert ("engram_profile" in names) is asked
        assert ("engram_head_load" in names) is asked
        assert "engram_distance" not in names


def _plain(store: Path) -> Path:
    """A store without format and spec."""
    store.mkdir()
    (store / "shard_000.bin").write_bytes(bytes(640))
    layout = {"shards": 1, "rows_per_shard": 40, "width": 16, "elem_bytes": 1}
    (store / "manifest.json").write_text(json.dumps({"layout": layout}))
    return store


def test_the_own_table_is_written_once_and_read_by_its_spec(tmp_path: Path) -> None:
    database = own_table.own_database(tmp_path, replace(own_table.PLE, shards=2, shard_rows=5000))
    files = [(file, file.stat().st_mtime_ns) for file in sorted(tmp_path.glob("store-*/*"))]
    assert own_table.own_database(tmp_path, replace(own_table.PLE, shards=2, shard_rows=5000)) == database
    assert [(file, file.stat().st_mtime_ns) for file in sorted(tmp_path.glob("store-*/*"))] == files
    table = Session.open(database, read_only=True).table(own_table.NAME)
    assert (table.rows, table.row_bytes, table.dim, len(table.heads())) == (10_000, 160, 160, 16)
    assert table.e_t([1, 2, 3]).shape == (3, 2560)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_planted_rows_are_in_both_tables_and_changed_ones_in_one(tmp_path: Path) -> None:
    shape = replace(own_table.PLANTED, shards=2, shard_rows=5001, planted_every=100)
    database = own_table.inspected_database(tmp_path, shape)
    session = Session.open(database, read_only=True)
    ids = np.arange(10_002)
    rows, changed = (session.table(name).fetch(ids) for name in (own_table.NAME, own_table.CHANGED))
    assert np.array_equal(ids[(rows == 0).all(axis=1)], ids[::100])
    assert np.array_equal(ids[(rows == 0x38).all(axis=1)], ids[1::100])
    assert np.array_equal(ids[((rows & 0x7F) == 0x7F).any(axis=1)], ids[2::100])
    # Groups 0 and 1, 2 and 3, ... have one row in common; the last group has no partner.
    pairs = rows[3::100]
    assert np.array_equal(pairs[0:100:2], pairs[1:100:2])
    assert len(np.unique(rows, axis=0)) == 10_002 - 100 - 100 - 50
    assert np.array_equal(ids[(rows != changed).any(axis=1)], ids[4::100])
    values, others = (session.table(name).vectors(ids[4::100]) for name in (own_table.NAME, own_table.CHANGED))
    assert np.array_equal((values != others).sum(axis=1), (values[:, 80] != 0).astype(int))


def test_memory_of_a_process_is_seen_while_it_is_held() -> None:
    before = memory.own_bytes()
    with memory.own_peak() as peak:
        held = np.ones(64 << 20, np.uint8)
    assert held.all()
    assert peak.bytes >= before + held.nbytes * 0.9
    assert memory.peak_bytes() >= peak.bytes * 0.9


def test_what_a_killed_process_half_wrote_is_removed(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    for owner in (ended, str(os.getppid())):
        (tmp_path / f".store-1x5000.{owner}-0.unfinished").mkdir()
        (tmp_path / f".store-1x5000.{owner}-0.unfinished" / "shard_000.bin").write_bytes(b"half")
    own_table.own_database(tmp_path, replace(own_table.PLE, shards=1, shard_rows=5000))
    # The other one may still be writing.
    assert [path.name for path in tmp_path.glob(".*")] == [f".store-1x5000.{os.getppid()}-0.unfinished"]


def test_ctrl_c_ends_a_write_as_such(tmp_path: Path) -> None:
    script = (
        "import sys; from dataclasses import replace; from pathlib import Path; from engramsql.bench import own_table\n"
        "print('go', flush=True)\n"
        "own_table.own_database(Path(sys.argv[1]), replace(own_table.PLE, shards=1000, shard_rows=200_000))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not any(tmp_path.rglob("shard_*")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> Callable[[], None]:
        raise OSError("no space left on device")

    monkeypatch.setattr(own_table, "_rows", fail)
    with pytest.raises(OSError, match="no space"):
        own_table.own_database(tmp_path, replace(own_table.PLE, shards=1, shard_rows=5000))
    assert list(tmp_path.iterdir()) == []
