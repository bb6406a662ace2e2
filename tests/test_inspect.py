"""Profiles, histograms, statistics and hashes of rows, against numpy and exact sums of the same values."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest
from extension_support import FP8, GOLDEN, arrow, connect, connect_ple
from golden_data import case
from helpers import q, refuses
from oldest import run_oldest
from test_extension_copy import SPEC
from test_extension_verify import huge_store, interrupted

import engramsql
from engramsql.udf import extension_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# Golden checkpoints: table name, directory.
CHECKPOINTS = {
    "fp8": ("ple", "ckpt_qwen4_exp_fp8"),
    "bf16": ("ple", "ckpt_qwen4_exp_bf16"),
    "nvfp4": ("ple", "ckpt_qwen4_exp_nvfp4"),
    "v41": ("ds_l1", "ckpt_deepseek_v41"),
    "v41 second layer": ("ds_l3", "ckpt_deepseek_v41"),
}
# Formats of hand-made stores, with their scale.
FORMATS = {
    "fp8_e4m3": 0.0625,
    "fp8_e4m3_e8m0": None,
    "nvfp4": 0.375,
    "bf16": None,
    "f16": None,
    "f32": None,
    "e8m0": None,
}
ROWS, DIM = 1408, 160
# Sums are compensated or over few values at a time: what is left is the rounding of squares, roots and quotients.
CLOSE = 1e-12


@dataclass
class Decoded:
    """A table's rows by the golden decoding tables."""

    rows: NDArray[np.uint8]
    values: NDArray[np.float32]
    scales: NDArray[np.float32] | None
    codes: NDArray[np.uint8] | None
    plain: NDArray[np.float32] | None
    heads: NDArray[np.int64]


def decoded(con: duckdb.DuckDBPyConnection, table: str) -> Decoded:
    """Reads all rows as bytes and decodes them here."""
    (format_,) = q(con, "SELECT format FROM engram_tables() WHERE name = ?", table)[0]
    found = q(con, f"SELECT head, row FROM engram_scan('{table}') ORDER BY rowid")
    rows = np.array([np.frombuffer(row, np.uint8) for _, row in found])
    heads = np.array([-1 if head is None else head for head, _ in found])
    e4m3 = case("decode", "e4m3fn")["f32"].view(np.float32)
    e8m0 = case("decode", "e8m0")
    width = rows.shape[1]
    with np.errstate(all="ignore"):
        if format_ in ("bf16", "f16", "f32"):
            if format_ == "bf16":
                values = (rows.view("<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                values = rows.view("<f2" if format_ == "f16" else "<f4").astype(np.float32)
            return Decoded(rows, values, None, None, None, heads)
        if format_ == "fp8_e4m3":
            plain = e4m3[rows]
            return Decoded(rows, plain * scale_of(con, table), None, rows, plain, heads)
        if format_ == "e8m0":
            plain = e8m0["ocp_f32"].view(np.float32)[rows]
            return Decoded(rows, plain, None, rows, plain, heads)
        if format_ == "fp8_e4m3_e8m0":
            codes, scales = (
                rows[:, : width // 33 * 32],
                e8m0["engine_f32"].view(np.float32)[rows[:, width // 33 * 32 :]],
            )
            plain = e4m3[codes]
            return Decoded(rows, plain * np.repeat(scales, 32, axis=1), scales, codes, plain, heads)
        assert format_ == "nvfp4"
        packed, scales = rows[:, : width // 9 * 8], e4m3[rows[:, width // 9 * 8 :]]
        pairs = case("decode", "e2m1")["byte_to_pair_f32"].view(np.float32)
        plain = pairs[packed].reshape(len(rows), -1)
        codes = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(rows), -1)
        values = (plain * np.repeat(scales, 16, axis=1)) * scale_of(con, table)
        return Decoded(rows, values.astype(np.float32), scales, codes, plain, heads)


def scale_of(con: duckdb.DuckDBPyConnection, table: str) -> np.float32:
    """The scale of the table: what its vectors have that plain codes do not."""
    for _, vector, row in q(con, f"SELECT rowid, embedding, row FROM engram_scan('{table}')"):
        format_ = q(con, "SELECT format FROM engram_tables() WHERE name = ?", table)[0][0]
        plain = q(con, f"SELECT engram_decode(?::BLOB, '{format_}', 1)", row)[0][0]
        for value, code in zip(vector, plain, strict=True):
            if code == 1.0:
                return np.float32(value)
    pytest.fail(f"no value of '{table}' is 1.0 before its scale")


def close(found: float | None, expected: float | None, of: float = 0.0) -> bool:
    """Equal but for rounding, which is measured against ``of`` where values of both signs cancel."""
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= CLOSE * max(abs(expected), of)


def check_profile(line: dict[str, Any], values: NDArray[np.float32], scales: NDArray[np.float32] | None) -> None:
    """Compares one line of a profile with what numpy says of the same values."""
    nan, inf, zero = np.isnan(values), np.isinf(values), values == 0
    dead = zero.all(axis=1)
    constant = (values == values[:, :1]).all(axis=1) & ~dead
    counts = {
        "rows": len(values),
        "dead": dead.sum(),
        "constant": constant.sum(),
        "nans": nan.sum(),
        "infs": inf.sum(),
        "zeros": zero.sum(),
        "nan_rows": nan.any(axis=1).sum(),
        "inf_rows": inf.any(axis=1).sum(),
    }
    assert {name: line[name] for name in counts} == {name: int(count) for name, count in counts.items()}
    finite = values[np.isfinite(values)].astype(np.float64)
    if len(finite) == 0:
        assert [line[name] for name in ("min", "max", "mean", "stddev")] == [None] * 4
    else:
        assert (line["min"], line["max"]) == (finite.min(), finite.max())
        mean = math.fsum(finite) / len(finite)
        assert close(line["mean"], mean, np.abs(finite).mean())
        # Differences and squares are rounded in long double, the exact sum is not.
        squares = (finite.astype(np.longdouble) - np.longdouble(mean)) ** 2
        assert close(line["stddev"], math.sqrt(float(squares.sum()) / len(finite)))
    whole = values[np.isfinite(values).all(axis=1)].astype(np.float64)
    norms = [math.sqrt(math.fsum(row * row)) for row in whole]
    if norms:
        assert close(line["norm_min"], min(norms))
        assert close(line["norm_max"], max(norms))
        assert close(line["norm_mean"], math.fsum(norms) / len(norms))
    else:
        assert [line[name] for name in ("norm_min", "norm_max", "norm_mean")] == [None] * 3
    bounds = (None, None) if scales is None else (np.nanmin(scales), np.nanmax(scales))
    assert (line["scale_min"], line["scale_max"]) == bounds


def profile_of(con: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    found = con.execute(f"FROM engram_profile('{table}')")
    names = [column[0] for column in found.description]
    return [dict(zip(names, line, strict=True)) for line in found.fetchall()]


def check_table(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Every function's whole answer."""
    data = decoded(con, table)
    # A table without a spec has no heads to list.
    heads = q(con, f"SELECT head, ngram_order FROM engram_heads('{table}')") if (data.heads >= 0).any() else []
    unreached = [(None, None)] if (data.heads == -1).any() else []
    lines = profile_of(con, table)
    assert [(line["head"], line["ngram_order"]) for line in lines] == heads + unreached
    for line in lines:
        of_head = data.heads == (-1 if line["head"] is None else line["head"])
        check_profile(line, data.values[of_head], None if data.scales is None else data.scales[of_head])
    check_histogram(con, table, data)
    check_rows(con, table, data)


def check_histogram(con: duckdb.DuckDBPyConnection, table: str, data: Decoded) -> None:
    for arguments, chosen in (("", slice(None)), (", 3, 90", slice(3, 93))):
        expected: list[Any] = []
        heads = data.heads[chosen]
        for head in [*np.unique(heads[heads >= 0]), *np.unique(heads[heads < 0])]:
            name = None if head < 0 else int(head)
            if data.codes is not None and data.plain is not None:
                of_head = heads == head
                codes, plain = data.codes[chosen][of_head], data.plain[chosen][of_head]
                for code in np.unique(codes):
                    value = float(plain[codes == code][0])
                    expected.append((name, int(code), value, value, int((codes == code).sum())))
            else:
                expected += bins(name, data.values[chosen][heads == head])
        found = q(con, f"FROM engram_histogram('{table}'{arguments})")
        assert [tuple(map(repr, line)) for line in found] == [tuple(map(repr, line)) for line in expected]


def bins(head: int | None, values: NDArray[np.float32]) -> list[Any]:
    """Bins by sign and power of two, by logarithms where the engine looks at bits."""
    counts: dict[tuple[float, float], int] = {}
    for value in values.astype(np.float64).ravel().tolist():
        size = abs(value)
        if math.isnan(value):
            ends = (math.nan, math.nan)
        elif size in (0.0, math.inf):
            ends = (value + 0.0, value + 0.0)
        elif size < 2.0**-126:
            ends = (2.0**-149, 2.0**-126)
        else:
            power = math.frexp(size)[1]
            ends = (2.0 ** (power - 1), 2.0**power)
        if value < 0 and size not in (0.0, math.inf):
            ends = (-ends[1], -ends[0])
        counts[ends] = counts.get(ends, 0) + 1
    # Python's dict finds the one NaN object that is used above.
    order = sorted(counts, key=lambda ends: (math.isnan(ends[0]), ends[0]))
    return [(head, None, *ends, counts[ends]) for ends in order]


def check_rows(con: duckdb.DuckDBPyConnection, table: str, data: Decoded) -> None:
    """Statistics and hashes: of all rows in order, which are read as a scan, and of some in any order."""
    everything = q(
        con, f"SELECT engram_row_stats('{table}', i), engram_row_hash('{table}', i) FROM range({len(data.rows)}) t(i)"
    )
    hashes: dict[bytes, int] = {}
    for (stats, hash_), row, values, scales in zip(
        everything, data.rows, data.values, [None] * len(data.rows) if data.scales is None else data.scales, strict=True
    ):
        # Equal hashes for equal rows, and no others.
        assert hashes.setdefault(row.tobytes(), hash_) == hash_
        finite = values[np.isfinite(values)].astype(np.float64)
        dead = bool((values == 0).all())
        exact = {
            "nans": int(np.isnan(values).sum()),
            "infs": int(np.isinf(values).sum()),
            "zeros": int((values == 0).sum()),
            "min": finite.min() if len(finite) else None,
            "max": finite.max() if len(finite) else None,
            "constant": bool((values == values[0]).all()) and not dead,
            "dead": dead,
            "scale_min": None if scales is None or np.isnan(scales).all() else np.nanmin(scales),
            "scale_max": None if scales is None or np.isnan(scales).all() else np.nanmax(scales),
        }
        assert {name: stats[name] for name in exact} == exact
        some = len(finite) > 0
        assert close(stats["sum"], math.fsum(finite) if some else None, float(np.abs(finite).sum()))
        assert close(stats["sum_squares"], math.fsum(finite * finite) if some else None)
        mean = math.fsum(finite) / len(finite) if some else None
        assert close(stats["mean"], mean, float(np.abs(finite).max()) if some else 0.0)
        assert close(stats["stddev"], math.sqrt(math.fsum((finite - mean) ** 2) / len(finite)) if some else None)
    assert len(set(hashes.values())) == len(hashes)
    ids = [7, 7, None, 0, len(data.rows) - 1, 3]
    chosen = q(
        con, f"SELECT engram_row_stats('{table}', i), engram_row_hash('{table}', i) FROM (SELECT unnest(?) AS i)", ids
    )
    # Their text: NaN does not equal itself.
    assert repr(chosen) == repr([(None, None) if i is None else everything[i] for i in ids])


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_golden_checkpoints(name: str) -> None:
    con = connect()
    table, directory = CHECKPOINTS[name]
    con.execute(f"CALL engram_register('{table.removesuffix('_l1').removesuffix('_l3')}', '{GOLDEN / directory}')")
    check_table(con, table)


def odd_store(directory: Path, format_: str) -> Path:
    """Random rows of one shard, but for planted ones: dead, constant, NaN, infinite, in every part of the table."""
    rng = np.random.default_rng(42)
    if format_ in ("bf16", "f16", "f32"):
        kind = {"bf16": "<u2", "f16": "<f2", "f32": "<f4"}[format_]
        values = rng.standard_normal((ROWS, DIM)).astype(np.float32) * 10.0 ** rng.integers(-4, 4, (ROWS, 1))
        # The smallest subnormal number of the format, both zeros, and the like.
        values[5, :4] = [0.0, -0.0, 6e-8 if format_ == "f16" else 1e-45, -6e-8 if format_ == "f16" else -1e-40]
        for first in (10, 700, 1395):
            values[first] = 0.0
            values[first + 1] = np.where(np.arange(DIM) % 2, 0.0, -0.0)
            values[first + 2] = -1.5
            values[first + 3, 17] = np.nan
            values[first + 4, [0, 159]] = [np.inf, -np.inf]
            values[first + 5] = np.nan
            values[first + 6] = np.inf
            values[first + 7, [3, 4]] = [np.nan, -np.inf]
        with np.errstate(all="ignore"):
            rows = (
                (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
                if kind == "<u2"
                else values.astype(kind)
            )
        rows = rows.view(np.uint8)
    else:
        scales = {"fp8_e4m3": 0, "e8m0": 0, "fp8_e4m3_e8m0": DIM // 32, "nvfp4": DIM // 16}[format_]
        size = DIM // 2 if format_ == "nvfp4" else DIM
        rows = rng.integers(0, 256, (ROWS, size + scales), dtype=np.uint8)
        if format_ != "e8m0":
            # NaN codes of E4M3 only where they are planted.
            rows[(rows & 0x7F) == 0x7F] ^= 1
        if format_ == "fp8_e4m3_e8m0":
            rows[:, size:] = rng.integers(110, 140, (ROWS, scales))
        for first in (10, 700, 1395):
            rows[first, :size] = 0
            rows[first + 1, :size] = 0x80 if format_ != "nvfp4" else 0x08
            rows[first + 2, :size] = 0x3A if format_ != "nvfp4" else 0x55
            rows[first + 2, size:] = 120
            if format_ != "nvfp4":
                rows[first + 3, 17] = 0xFF
                rows[first + 4, :size] = 0x7F
            if scales:
                # NaN of an E4M3 scale, infinity of an E8M0 scale, and scales of zero.
                rows[first + 5, size] = 0x7F if format_ == "nvfp4" else 255
                rows[first + 6, size:] = 0
                rows[first + 7, size:] = 0xFF
    directory.mkdir()
    (directory / "shard_000.bin").write_bytes(rows.tobytes())
    return directory


@pytest.mark.parametrize("with_spec", [False, True])
@pytest.mark.parametrize("format_", FORMATS)
def test_odd_rows_of_every_format(tmp_path: Path, format_: str, with_spec: bool) -> None:
    con = connect()
    scale = FORMATS[format_]
    options = f", format := '{format_}'" + ("" if scale is None else f", scale := {scale}")
    store = odd_store(tmp_path / "odd", format_)
    width = (store / "shard_000.bin").stat().st_size // ROWS
    if with_spec:
        spec = tmp_path / "small.toml"
        spec.write_text(SPEC)
        options += f", spec := '{spec}', layer := 1"
    con.execute(f"CALL engram_register('odd', '{store}', width := {width}{options})")
    check_table(con, "odd")


def test_threads_and_stretches_do_not_show(tmp_path: Path) -> None:
    """More rows than a thread takes at once; the same bits however many threads there are, and numpy's values."""
    rng = np.random.default_rng(1)
    rows, dim = 40_000, 17
    # A large mean beside a small deviation: the difference of two sums of squares would have no digit of it.
    values = (rng.standard_normal((rows, dim)) + 4096).astype("<f4")
    values[16_384] = np.nan
    store = tmp_path / "store"
    store.mkdir()
    (store / "shard_000.bin").write_bytes(values.tobytes())
    seen = set()
    with engramsql.connect() as db:
        db.register("t", store, width=dim * 4, format="f32")
        try:
            for threads in (1, 2, 5):
                db.set_threads(threads)
                (line,) = profile_of(db.connection, "t")
                seen.add(repr(line))
                assert q(db, "SELECT sum(count) FROM engram_histogram('t')") == [(rows * dim,)]
            # Single rows: a chunk of consecutive ids is read as a scan, others are gathered.
            of_row = "engram_row_hash('t', i) AS hash, engram_row_stats('t', i) AS stats"
            db.execute(f"CREATE TEMP TABLE scanned AS SELECT i, {of_row} FROM range({rows}) t(i)")
            db.execute(f"CREATE TEMP TABLE backwards AS SELECT i, {of_row} FROM range({rows - 1}, -1, -1) t(i)")
            both = "scanned a JOIN backwards b ON a.i = b.i"
            assert q(db, f"SELECT count(*) FROM {both} WHERE a.hash = b.hash AND a.stats = b.stats") == [(rows,)]
            assert q(db, "SELECT i, stats.nans, stats.min FROM scanned WHERE stats.sum IS NULL") == [
                (16_384, dim, None)
            ]
            sums = db.sql("SELECT stats.sum FROM scanned ORDER BY i").fetchnumpy()["sum"]
            expected = values.astype(np.float64).sum(axis=1)
            assert np.allclose(np.delete(sums.filled(np.nan), 16_384), np.delete(expected, 16_384), rtol=CLOSE, atol=0)
        finally:
            db.set_threads(None)
    assert len(seen) == 1
    check_profile(line, values, None)


def test_equal_rows_are_found(tmp_path: Path) -> None:
    """In place or copied, whole or in two parts, a row has one hash."""
    con = connect_ple()
    con.execute(f"CALL engram_register('ds', '{GOLDEN / 'ckpt_deepseek_v41'}')")
    for table in ("ple", "ds_l1"):
        copied = tmp_path / table
        con.execute(f"COPY (SELECT row FROM {table} ORDER BY rowid) TO '{copied}' (FORMAT engram)")
        both = f"engram_row_hash('{table}', rowid), engram_row_hash('{copied}', rowid)"
        assert all(mine == other for mine, other in q(con, f"SELECT {both} FROM engram_scan('{table}')"))
    # Computed by the reference implementation (Python package xxhash 3.8, over XXH3 of xxHash 0.8).
    known = {"ple": 0x89CCE403E8E878530C6C910359146966, "ds_l1": 0xA14998BBCDF292314B2E44B122817547}
    for table, expected in known.items():
        ((found,),) = q(con, f"SELECT engram_row_hash('{table}', 7)")
        assert found % (1 << 128) == expected
        assert arrow(con, f"SELECT engram_row_hash('{table}', 7) AS hash")["hash"].to_pylist() == [found]
    doubled = tmp_path / "doubled"
    twice = "SELECT row FROM ple UNION ALL (SELECT row FROM ple ORDER BY rowid LIMIT 5)"
    con.execute(f"COPY ({twice}) TO '{doubled}' (FORMAT engram)")
    hashed = f"(SELECT row, engram_row_hash('{doubled}', rowid) AS hash FROM engram_scan('{doubled}'))"
    by_hash = q(con, f"SELECT count(*) FROM {hashed} GROUP BY hash HAVING count(*) > 1 ORDER BY ALL")
    assert by_hash == q(con, f"SELECT count(*) FROM {hashed} GROUP BY row HAVING count(*) > 1 ORDER BY ALL")
    assert sum(count for (count,) in by_hash) >= 10
    # A hash can be kept and compared.
    con.execute("CREATE TABLE hashes AS SELECT rowid AS id, engram_row_hash('ple', rowid) AS hash FROM ple")
    assert q(con, "SELECT id FROM hashes WHERE hash = engram_row_hash('ple', 7)") == [(7,)]


@pytest.mark.parametrize(
    ("sql", "fragments"),
    [
        ("FROM engram_profile('nobody')", ["no table named 'nobody'"]),
        ("FROM engram_profile(NULL)", ["table is NULL"]),
        ("FROM engram_profile('bare')", ["table 'bare' has no value format"]),
        ("FROM engram_histogram('bare')", ["table 'bare' has no value format"]),
        ("FROM engram_histogram('ple', 1400, 9)", ["1408", "'ple' has 1408 rows"]),
        ("FROM engram_histogram('ple', -1)", ["-1", "'ple'"]),
        ("FROM engram_histogram('ple', 1.5)", ["first"]),
        ("SELECT engram_row_stats('bare', 0)", ["table 'bare' has no value format"]),
        ("SELECT engram_row_stats('ple', 1408)", ["1408", "'ple'"]),
        ("SELECT engram_row_stats('ple', 1.5)", ["DECIMAL"]),
        ("SELECT engram_row_hash('ple', -1)", ["-1", "'ple'"]),
        ("SELECT engram_row_hash('ple', i + 800) FROM range(700) t(i)", ["is out of range", "1408"]),
        ("SELECT engram_row_hash('nobody', 1)", ["no table named 'nobody'"]),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, sql: str, fragments: list[str]) -> None:
    con = connect_ple()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "shard_000.bin").write_bytes(bytes(320))
    con.execute(f"CALL engram_register('bare', '{bare}', width := 160)")
    refuses(lambda: con.execute(sql).fetchall(), *fragments)
    assert con.execute("SELECT 42").fetchall() == [(42,)]


def test_no_rows_have_no_lines() -> None:
    con = connect_ple()
    for first in (0, 5, 1408):
        assert q(con, f"FROM engram_histogram('ple', {first}, 0)") == []
    assert q(con, "SELECT engram_row_stats('ple', i), engram_row_hash('ple', i) FROM range(0) t(i)") == []
    assert q(con, "SELECT engram_row_stats('ple', NULL), engram_row_hash('ple', NULL)") == [(None, None)]


@pytest.mark.parametrize("damage", ["truncated", "gone"])
@pytest.mark.parametrize(
    "sql",
    ["FROM engram_profile('t')", "FROM engram_histogram('t')", "SELECT engram_row_stats('t', i) FROM range(1408) t(i)"],
)
def test_a_damaged_file_is_named_and_nothing_is_answered(tmp_path: Path, sql: str, damage: str) -> None:
    con = connect_ple()
    options = "FORMAT engram, SHARD_BYTES 64000, VALUE_FORMAT fp8_e4m3, SCALE 1"
    con.execute(f"COPY (SELECT row FROM ple) TO '{tmp_path / 'store'}' ({options})")
    con.execute(f"CALL engram_register('t', '{tmp_path / 'store'}')")
    assert q(con, "SELECT sum(rows) FROM engram_profile('t')") == [(1408,)]
    shard = tmp_path / "store" / "shard_002.bin"
    if damage == "gone":
        shard.unlink()
    else:
        shard.chmod(0o644)
        with shard.open("r+b") as file:
            file.truncate(6400)
    refuses(lambda: con.execute(sql).fetchall(), "shard_002.bin")
    # The rest of the table can be read: what was refused is the answer, not the rows.
    if "histogram" in sql:
        assert q(con, "SELECT sum(count) FROM engram_histogram('t', 0, 800)") == [(800 * 160,)]


@pytest.mark.parametrize("sql", ["FROM engram_profile('huge')", "FROM engram_histogram('huge')"])
def test_an_interrupt_ends_them(tmp_path: Path, sql: str) -> None:
    con = connect()
    huge_store(tmp_path / "huge")
    con.execute(
        f"CALL engram_register('huge', '{tmp_path / 'huge'}', width := 160, format := 'fp8_e4m3', scale := 1.0)"
    )
    interrupted(con, sql)


def test_several_at_a_time() -> None:
    con = connect_ple()
    expected = q(con, "FROM engram_profile('ple')")
    found: list[Any] = [None] * 4

    def ask(place: int) -> None:
        found[place] = q(con.cursor(), "FROM engram_profile('ple')")

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_types_and_a_file_database(tmp_path: Path) -> None:
    """The macros and the functions themselves have the same columns; without the macros arguments are named."""
    memory, file = connect_ple(), connect(str(tmp_path / "file.db"))
    file.execute(f"CALL engram_register('ple', '{FP8}')")
    for call in ("engram_profile('ple')", "engram_histogram('ple', first := 5, count := 30)"):
        described = q(memory, f"DESCRIBE FROM {call}")
        assert q(file, f"DESCRIBE FROM {call}") == described
        assert repr(q(file, f"FROM {call}")) == repr(q(memory, f"FROM {call}"))
        assert not [name for name, kind, *_ in described if kind not in ("INTEGER", "BIGINT", "FLOAT", "DOUBLE")]
    ((stats, hash_),) = q(
        memory, "SELECT typeof(engram_row_stats('ple', 1)), typeof(engram_row_hash('ple', 1::UHUGEINT))"
    )
    fields = [
        *("nans BIGINT", "infs BIGINT", "zeros BIGINT", "min FLOAT", "max FLOAT", "sum DOUBLE", "sum_squares DOUBLE"),
        *("mean DOUBLE", "stddev DOUBLE"),
        *("constant BOOLEAN", "dead BOOLEAN", "scale_min FLOAT", "scale_max FLOAT"),
    ]
    assert (stats, hash_) == (f"STRUCT({', '.join(fields)})", "HUGEINT")
    sql = "SELECT engram_row_stats('ple', CASE WHEN i % 2 = 0 THEN i END).dead IS NULL FROM range(4) t(i)"
    assert q(memory, sql) == [(False,), (True,), (False,), (True,)]


def test_the_oldest_duckdb() -> None:
    code = """
import sys, duckdb
extension, checkpoint = sys.argv[1:]
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{extension}'")
con.execute(f"CALL engram_register('ple', '{checkpoint}')")
print(con.execute("SELECT count(*), sum(rows), bool_or(rows IS NULL) FROM engram_profile('ple')").fetchall())
print(con.execute("SELECT sum(count) FROM engram_histogram('ple', 10, 5)").fetchall())
print(con.execute("SELECT engram_row_hash('ple', 7), engram_row_stats('ple', NULL)").fetchall())
print(con.execute("SELECT engram_row_stats('ple', 7)").fetchall())
"""
    con = connect_ple()
    (hash_,) = q(con, "SELECT engram_row_hash('ple', 7)")[0]
    lines = run_oldest(code, str(extension_path()), str(FP8)).splitlines()
    assert lines == [
        "[(17, 1408, False)]",
        "[(800,)]",
        f"[({hash_}, None)]",
        repr(q(con, "SELECT engram_row_stats('ple', 7)")),
    ]
