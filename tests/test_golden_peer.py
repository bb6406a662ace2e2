"""Stores that engramdb-python wrote open here, and both give the same bytes and the same row ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from helpers import one, q, sql_refuses

ROWS = GOLDEN / "peer_store" / "rows"


@pytest.fixture
def peer(db: Any) -> Any:
    db.register("peer", ROWS)
    return db


def test_rows(peer: Any) -> None:
    with np.load(GOLDEN / "peer_store" / "expected.npz") as z:
        ids, rows = z["rowids"].astype(np.int64), z["rows"]
    assert np.array_equal(peer.table("peer").fetch(ids), rows)
    found = q(peer, "SELECT rowid, row FROM engram_fetch('peer', ?::BIGINT[])", ids.tolist())
    assert [i for i, _ in found] == ids.tolist()
    assert b"".join(r for _, r in found) == rows.tobytes()
    scalar = q(peer, "SELECT engram_row('peer', i) FROM (SELECT unnest(?::BIGINT[]) AS i)", ids.tolist())
    assert b"".join(r for (r,) in scalar) == rows.tobytes()


def test_records_of_its_views_are_the_rows_of_their_keys(peer: Any) -> None:
    folder = GOLDEN / "peer_store"
    with np.load(folder / "expected.npz") as z:
        keys, records = z["keys"].astype(np.int64), z["records"]
    assert np.loadtxt(folder / "keys.txt", dtype=np.int64).reshape(-1, 16).tolist() == keys.tolist()
    fetched = peer.table("peer").fetch(keys).reshape(len(keys), -1)
    assert np.array_equal(fetched, records)
    assert (folder / "view.bin").read_bytes() == fetched.tobytes()
    slots = np.frombuffer((folder / "view4k.bin").read_bytes(), np.uint8).reshape(-1, 4096)
    assert np.array_equal(slots[:, : fetched.shape[1]], fetched[: len(slots)])
    assert not slots[:, fetched.shape[1] :].any()


def test_geometry(peer: Any) -> None:
    assert q(peer, "SELECT rows, row_bytes, shards FROM engram_tables()") == [(256, 160, 4)]
    shards = q(
        peer, "SELECT shard, first_row, rows, \"offset\", bytes, present FROM engram_shards('peer') ORDER BY shard"
    )
    assert shards == [(s, 64 * s, 64, 0, 10240, True) for s in range(4)]


def test_a_store_has_no_values_until_a_format_is_named(peer: Any) -> None:
    sql_refuses(peer, "SELECT embedding FROM engram_fetch('peer', [0])", "format", "peer")
    sql_refuses(peer, "SELECT engram_vector('peer', 0)", "format", "peer")
    assert len(one(peer, "SELECT row FROM engram_fetch('peer', [0])")) == 160
    peer.register("peer8", ROWS, format="fp8_e4m3", scale=209 / 2**20)
    values = one(peer, "SELECT embedding FROM engram_fetch('peer8', [0])")
    raw = one(peer, "SELECT row FROM engram_fetch('peer', [0])")
    assert list(values) == one(peer, "SELECT engram_decode(?::BLOB, 'fp8_e4m3', ?::FLOAT)", raw, 209 / 2**20)


def test_engramdb_reads_the_same_rows(db: Any, tmp_path: Path) -> None:
    engramdb = pytest.importorskip("engramdb")
    data = np.random.default_rng(1).integers(0, 256, (5 * 400, 160), dtype=np.uint8)
    make_store(tmp_path / "s", shards=5, rows=400, width=160, data=data, manifest=True)
    store = engramdb.Store(str(tmp_path / "s"), shards=5, rows_per_shard=400, width=160)
    db.register("s", tmp_path / "s")
    ids = np.random.default_rng(2).integers(0, 2000, 3000)
    theirs = np.frombuffer(store.fetch(ids.tolist()), dtype=np.uint8).reshape(3000, 160)
    assert np.array_equal(db.table("s").fetch(ids), theirs)
    store.close()


def test_engramdb_computes_the_same_rowids(db: Any) -> None:
    engramdb = pytest.importorskip("engramdb")
    rng = np.random.default_rng(3)
    for length in (1, 2, 3, 17, 300):
        tokens = rng.integers(0, 248320, length)
        tokens[rng.random(length) < 0.1] = 248044
        theirs = np.asarray(engramdb.rowids_for_seq(tokens.tolist())).reshape(length, 16)
        assert one(db, "SELECT rowids_for_seq(?::BIGINT[])", tokens.tolist()) == theirs.tolist()
