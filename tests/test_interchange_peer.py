"""Files of engramdb-python open here, and what is exported opens there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from helpers import refuses

import engramsql
from engramsql.engine import PeerIndex, Spec
from engramsql.errors import EngramWarning, SourceError
from engramsql.interchange.bundle import read_bundle
from engramsql.interchange.keys import read_keys
from engramsql.interchange.npz import read_slot_index
from engramsql.interchange.views import INDEX_FORMATS, keys_of_index, read_view

PEER = GOLDEN / "peer_store"
INDEXES = {
    "v1": "slot_index_v1",
    "v2": "slot_index_v2",
    "v3": "slot_index_v3",
    "v3_blake2b": "slot_index_v3_blake2b",
}
with np.load(PEER / "expected.npz") as _expected:
    EXPECTED = {name: _expected[name] for name in _expected.files}
KEYS = EXPECTED["keys"].astype(np.int64)


@pytest.fixture
def database(tmp_path: Path) -> Any:
    """A database with the golden store as ``peer``."""
    with engramsql.connect(tmp_path / "db") as db:
        db.register("peer", PEER / "rows", format="fp8_e4m3", scale=209 / 2**20)
        yield db


def same_files(a: Path, b: Path) -> bool:
    """Whether two directories hold the same files."""

    def files(directory: Path) -> dict[str, bytes]:
        return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}

    return files(a) == files(b)


@pytest.mark.parametrize("name", INDEXES)
def test_their_disk_indexes_are_read(name: str) -> None:
    index = PeerIndex.open(PEER / INDEXES[name])
    assert (index.version, index.heads, index.buckets, index.count) == (int(name[1]), 16, 16, 24)
    assert index.hash == ("fnv1a-64" if name in ("v2", "v3") else "blake2b")
    assert np.array_equal(index.lookup(KEYS), EXPECTED[f"lookup_{name}"])
    assert index.lookup(KEYS[0] + 1).tolist() == -1
    entries: dict[int, list[int]] = {}
    index.entries(lambda keys, slots: entries.update(zip(slots.tolist(), keys.tolist(), strict=True)))
    assert [entries[slot] for slot in range(24)] == KEYS.tolist()
    twice = index.lookup_all(KEYS[23]).tolist()
    assert sorted(twice) == [3, 23]


@pytest.mark.parametrize("name", INDEXES)
def test_the_same_index_is_written_byte_for_byte(tmp_path: Path, name: str) -> None:
    expected = PEER / INDEXES[name]
    meta = json.loads((expected / "index.json").read_text())
    PeerIndex.write(
        tmp_path / "i", KEYS, np.arange(24), version=int(name[1]), hash=meta["hash"], buckets=meta["num_buckets"]
    )
    assert same_files(tmp_path / "i", expected)


def test_what_take_raises_ends_the_entries() -> None:
    def take(keys: object, slots: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        PeerIndex.open(PEER / "slot_index_v2").entries(take)


def test_damaged_indexes_are_refused(tmp_path: Path) -> None:
    shutil.copytree(PEER / "slot_index_v3", tmp_path / "i")
    offsets = tmp_path / "i" / "offsets.bin"
    offsets.write_bytes(offsets.read_bytes()[:-8])
    refuses(lambda: PeerIndex.open(tmp_path / "i"), "offsets.bin")
    refuses(lambda: PeerIndex.open(tmp_path), "index.json")
    refuses(lambda: PeerIndex.write(tmp_path / "j", [[-1] * 16], [0]), "negative row id")
    refuses(lambda: PeerIndex.write(tmp_path / "j", [[1] * 16], [-1]), "slots")
    refuses(lambda: PeerIndex.write(tmp_path / "j", [[1] * 16], [0], version=4), "version 4")


def test_their_memory_index_is_read() -> None:
    ((keys, slots),) = read_slot_index(PEER / "slot_index.npz")
    assert np.array_equal(keys, KEYS)
    assert slots.tolist() == list(range(24))


@pytest.mark.parametrize(
    "arrays, fragment",
    [
        ({"rowids": KEYS}, "rowids and slots"),
        ({"rowids": KEYS, "slots": np.arange(23)}, "24 keys"),
        ({"rowids": KEYS.astype(float), "slots": np.arange(24)}, "float64"),
        ({"rowids": KEYS, "slots": np.arange(24), "heads": np.array([15])}, "15 heads"),
        ({"rowids": KEYS[0], "slots": np.arange(16)}, "[n, heads]"),
    ],
)
def test_wrong_memory_indexes_are_refused(tmp_path: Path, arrays: dict[str, Any], fragment: str) -> None:
    np.savez(tmp_path / "i.npz", **arrays)
    refuses(lambda: list(read_slot_index(tmp_path / "i.npz")), "i.npz", fragment)


def test_damaged_memory_indexes_are_refused(tmp_path: Path) -> None:
    whole = (PEER / "slot_index.npz").read_bytes()
    for content in (b"", b"no zip", whole[:-30], whole[: len(whole) // 2]):
        (tmp_path / "i.npz").write_bytes(content)
        refuses(lambda: list(read_slot_index(tmp_path / "i.npz")), "i.npz")
    flipped = bytearray(whole)
    flipped[300] ^= 1
    (tmp_path / "i.npz").write_bytes(flipped)
    refuses(lambda: list(read_slot_index(tmp_path / "i.npz")), "i.npz")


@pytest.mark.parametrize("form", ["v1", "v2", "v3", "v3_blake2b", "npz", "keys", "array"])
@pytest.mark.parametrize("view", ["view", "view4k"])
def test_their_views_are_imported_in_place(database: Any, view: str, form: str) -> None:
    slots = 24 if view == "view" else 4
    file = PEER / f"{view}.bin"
    if form in INDEXES or form == "npz":
        path = PEER / INDEXES.get(form, "slot_index.npz")
        if slots != 24:
            refuses(lambda: database.import_view("v", file, "peer", index=path), "slot")
            return
        entry = database.import_view("v", file, "peer", index=path)
    elif slots == 24:
        entry = database.import_view("v", file, "peer", keys=KEYS if form == "array" else PEER / "keys.txt")
    else:
        entry = database.import_view("v", file, "peer", keys=KEYS[:4])
    assert (entry.slots, entry.table, entry.record_bytes) == (slots, "peer", 2560)
    opened = database.view("v")
    assert np.array_equal(opened.records(np.arange(slots)), EXPECTED["records"][:slots])
    assert np.array_equal(opened.keys(np.arange(slots)), KEYS[:slots])
    expected = EXPECTED["lookup_memory"]
    assert np.array_equal(opened.lookup(KEYS), np.where(expected < slots, expected, -1))
    assert opened.e_t([0]).tobytes() == database.table("peer").vectors(KEYS[0]).tobytes()
    assert opened.order == "access"
    # Nothing of the records was copied.
    assert not list((database.directory / "views" / "v").glob("shard_*"))
    assert database.verify("v", "full").good


def test_records_that_do_not_fit_are_refused(database: Any, tmp_path: Path) -> None:
    import_view = database.import_view
    refuses(lambda: import_view("v", PEER / "view.bin", "peer"), "keys or slot index")
    refuses(lambda: import_view("v", PEER / "view.bin", "peer", keys=KEYS[::-1]), "slot 0")
    refuses(lambda: import_view("v", PEER / "view.bin", "peer", keys=KEYS[:, :15]), "16")
    refuses(lambda: import_view("v", tmp_path / "no.bin", "peer", keys=KEYS), "no.bin")
    refuses(lambda: import_view("v", PEER / "view.bin", "peer", keys=KEYS, index=PEER / "slot_index_v2"), "not both")
    refuses(lambda: import_view("v", PEER / "view.bin", "nope", keys=KEYS), "nope")
    for manifest, fragment in {
        '{"grans": 25}': "25 slots",
        '{"slot_bytes": 100}': "100",
        '{"slot_bytes": -1}': "slot_bytes",
        '{"slot_bytes": 2560, "record_bytes": 4000}': "do not fit",
        "[]": "no JSON object",
        "{": "no JSON",
    }.items():
        shutil.copy(PEER / "view.bin", tmp_path / "x.bin")
        (tmp_path / "x.manifest.json").write_text(manifest)
        refuses(lambda: import_view("v", tmp_path / "x.bin", "peer", keys=KEYS), fragment)
    assert database.record_views() == []


def test_keys_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engramsql.interchange import keys

    path = tmp_path / "k.txt"
    for block in (1 << 22, 5):
        monkeypatch.setattr(keys, "_BLOCK_BYTES", block)
        path.write_text("\n 1 \r\n2\n\n3\n4")
        assert np.concatenate(list(read_keys(path, 2))).tolist() == [[1, 2], [3, 4]]
        for content, heads, fragment in [
            ("1\n2\n3\n", 2, "1 are left over"),
            ("1\nx\n", 1, "line 2: 'x'"),
            ("1\n\n-2\n3\n", 1, "line 3: '-2'"),
            ("1\n2 3\n", 1, "line 2: '2 3'"),
            ("1\n99999999999999999999", 1, "99999999999999999999" if block > 5 else "line 2"),
        ]:
            path.write_text(content)
            refuses(lambda heads=heads: list(read_keys(path, heads)), "k.txt", fragment)


def test_a_view_without_a_manifest(database: Any, tmp_path: Path) -> None:
    shutil.copy(PEER / "view.bin", tmp_path / "x.bin")
    view = read_view(tmp_path / "x.bin")
    assert (view.slots, view.slot_bytes, view.record_bytes) == (24, 2560, 2560)
    database.import_view("v", tmp_path / "x.bin", "peer", keys=PEER / "keys.txt")
    assert database.view("v").slots == 24


@pytest.mark.parametrize("slot_bytes", [None, 4096])
def test_exported_views_open_there(database: Any, tmp_path: Path, slot_bytes: int | None) -> None:
    engramdb = pytest.importorskip("engramdb")
    from engramdb.disk_slot_index import DiskSlotIndex
    from engramdb.slot_index import SlotIndex

    database.import_view("v", PEER / "view.bin", "peer", keys=PEER / "keys.txt")
    directory = database.export_view("v", tmp_path / "out", slot_bytes=slot_bytes, indexes=["v1", "v2", "v3", "npz"])
    assert (directory / "keys.txt").read_bytes() == (PEER / "keys.txt").read_bytes()
    golden = "view" if slot_bytes is None else "view4k"
    exported = (directory / "v.bin").read_bytes()
    if slot_bytes is None:
        assert exported == (PEER / "view.bin").read_bytes()
    else:
        assert exported[: 4 * 4096] == (PEER / "view4k.bin").read_bytes()
    manifest = json.loads((directory / "v.manifest.json").read_text())
    theirs = json.loads((PEER / f"{golden}.manifest.json").read_text())
    assert list(manifest) == list(theirs)
    assert {**manifest, "grans": 24, "source": ""} == {**theirs, "grans": 24, "rows": 384, "source": ""}
    view = engramdb.View(str(directory / "v.bin"))
    assert view.len() == 24
    assert view.slot_bytes() == slot_bytes or 2560
    for name in ("v1", "v2", "v3"):
        with DiskSlotIndex(str(directory / INDEX_FORMATS[name])) as index:
            assert np.array_equal(index.to_slots(KEYS), EXPECTED[f"lookup_{name}"])
            assert index.lookup_all(KEYS[23]) == [3, 23]
    assert (directory / "slot_index.npz").read_bytes() == (PEER / "slot_index.npz").read_bytes()
    assert (directory / "slot_index.json").read_bytes() == (PEER / "slot_index.json").read_bytes()
    memory = SlotIndex.load(str(directory / "slot_index.npz"))
    assert np.array_equal(memory.to_slots(KEYS), EXPECTED["lookup_memory"])
    # And here again.
    found = np.concatenate(list(keys_of_index(directory / "slot_index_v3", 24, 16)))
    assert np.array_equal(found, KEYS)
    # The table has no spec, so the peer could not hash for it.
    assert not (directory / "bundle.json").exists()


def test_what_cannot_be_exported_is_refused(database: Any, tmp_path: Path) -> None:
    database.import_view("v", PEER / "view.bin", "peer", keys=PEER / "keys.txt")
    refuses(lambda: database.export_view("v", tmp_path / "o", slot_bytes=100), "100", "2560")
    refuses(lambda: database.export_view("v", tmp_path / "o", indexes=["v4"]), "v4")
    refuses(lambda: database.export_view("v", tmp_path / "o", indexes="npy"), "'npy'")
    refuses(lambda: database.export_view("nope", tmp_path / "o"), "nope")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    refuses(lambda: database.export_view("v", tmp_path / "full"), "exists")
    assert not (tmp_path / "o").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["db", "full"]


def small_bundle(directory: Path, **ple: object) -> Path:
    """A bundle over a store of 64 rows and the constants of nobody."""
    make_store(directory / "rows", shards=2, rows=32, width=160)
    spec = {"ple_embed_dim": 2560, "num_heads": 16, "ngram_size": 3, "heads_per_ngram": 8, "scale": 0.5, **ple}
    store = {"path": "rows", "shards": 2, "rows_per_shard": 32, "width": 160}
    document = {"schema": "engramdb-bundle-v1", "id": "x", "memory": {"type": "store", "store": store}, "ple": spec}
    (directory / "bundle.json").write_text(json.dumps(document))
    return directory / "bundle.json"


def test_a_bundle_is_a_source(tmp_path: Path) -> None:
    manifest = small_bundle(tmp_path / "b")
    for source in (manifest, manifest.parent, str(manifest)):
        with pytest.warns(EngramWarning, match="no spec"):
            db = engramsql.connect(source)
        with db:
            (entry,) = db.tables()
            assert (entry.name, entry.rows, entry.format, entry.scale) == ("ple", 64, "fp8_e4m3", 0.5)
            assert db.table("ple").fetch([0, 63]).tolist() == [[0] * 160, [1] * 160]
    with engramsql.connect(tmp_path / "db") as db:
        with pytest.warns(EngramWarning, match="no spec"):
            db.register("x", manifest)
        assert [entry.name for entry in db.tables()] == ["x"]


def test_a_bundle_of_a_view(tmp_path: Path) -> None:
    directory = tmp_path / "b"
    shutil.copytree(PEER, directory)
    document = {
        "schema": "engramdb-bundle-v1",
        "id": "x",
        "memory": {
            "type": "view",
            "view": {"path": "view.bin"},
            "slot_index": {"path": "slot_index_v2", "type": "disk"},
            "store": {"path": "rows", "shards": 4, "rows_per_shard": 64, "width": 160},
        },
        "ple": {"ple_embed_dim": 2560, "num_heads": 16, "scale": 0.25},
    }
    (directory / "bundle.json").write_text(json.dumps(document))
    with engramsql.connect(tmp_path / "db") as db:
        with pytest.warns(EngramWarning, match="no spec"):
            db.register("x", directory)
        assert [view.name for view in db.record_views()] == ["x_view"]
        assert np.array_equal(db.view("x_view").lookup(KEYS), EXPECTED["lookup_memory"])
    # A view alone has no table here.
    del document["memory"]["store"]  # type: ignore[attr-defined]
    (directory / "bundle.json").write_text(json.dumps(document))
    with engramsql.connect(tmp_path / "db2") as db:
        refuses(lambda: db.register("x", directory), "no store", "import")
    # A view that fails takes its table along.
    document["memory"] = {
        **document["memory"],
        "store": {"path": "rows", "shards": 4, "rows_per_shard": 64, "width": 160},
    }  # type: ignore[dict-item]
    document["memory"]["slot_index"] = {"path": "rows"}  # type: ignore[index]
    (directory / "bundle.json").write_text(json.dumps(document))
    with engramsql.connect(tmp_path / "db2") as db:
        with pytest.warns(EngramWarning, match="no spec"):
            refuses(lambda: db.register("x", directory), "rows")
        assert db.tables() == []


def test_the_released_hash_is_recognised(tmp_path: Path) -> None:
    spec = Spec.released_qwen_ple()
    bundle = read_bundle(small_bundle(tmp_path / "a"))
    assert bundle.is_hashed_as(spec)
    bundle = read_bundle(
        small_bundle(
            tmp_path / "b", multipliers=spec.multipliers, prime_sizes=spec.head_sizes, offsets=spec.head_offsets,
            eos=spec.eos_token,
        )
    )  # fmt: skip
    assert bundle.is_hashed_as(spec)
    for other in ({"eos": 1}, {"multipliers": [1, 3, 5]}, {"num_heads": 8}):
        assert not read_bundle(small_bundle(tmp_path / "c", **other)).is_hashed_as(spec)


@pytest.mark.parametrize(
    "change, fragment",
    [
        ({"schema": "other"}, "schema"),
        ({"memory": {"type": "disk"}}, "memory.type"),
        ({"memory": {"type": "store"}}, "'store'"),
        (
            {"memory": {"type": "store", "store": {"path": "gone", "shards": 1, "rows_per_shard": 1, "width": 1}}},
            "gone",
        ),
        (
            {"memory": {"type": "store", "store": {"path": "rows", "shards": 0, "rows_per_shard": 1, "width": 1}}},
            "shards",
        ),
        ({"ple": None}, "'ple'"),
    ],
)
def test_wrong_bundles_are_refused(tmp_path: Path, change: dict[str, Any], fragment: str) -> None:
    manifest = small_bundle(tmp_path / "b")
    document = {**json.loads(manifest.read_text()), **change}
    manifest.write_text(json.dumps(document))
    with pytest.raises(SourceError, match="bundle.json") as caught:
        read_bundle(manifest)
    assert fragment in str(caught.value)


def test_a_bundle_of_a_table_of_one_shard_that_describes_itself(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """What we build and export opens there and is registered here, with its spec and no warning."""
    engramdb_bundle = pytest.importorskip("engramdb.bundle")
    tokens = [17, 4, 256]
    with engramsql.connect(tmp_path / "db") as db:
        (entry,) = db.build("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        assert entry.shards == 1
        db.build_view("v", "ple", tokens)
        out = db.export_view("v", tmp_path / "out", indexes="v2")
        e_t = db.table("ple").e_t(tokens)
        ids = db.table("ple").rowids(tokens)
        rows = db.table("ple").fetch(ids).tobytes()
    with engramsql.connect(tmp_path / "db2") as db:
        (again,) = db.register("b", out)
        assert (again.rows, again.spec) == (entry.rows, entry.spec)
        assert db.table("b").e_t(tokens).tobytes() == e_t.tobytes()
        assert (db.view("b_view").lookup(ids) >= 0).all()
    assert [str(warning.message) for warning in recwarn if warning.category is EngramWarning] == []
    memory = engramdb_bundle.BundleManifest.load(out / "bundle.json").open_memory()
    assert np.array_equal(memory.rowids_for_tokens(tokens), ids)
    assert memory.fetch_raw(ids.tolist()) == rows
    # Other constants than the store's own are a contradiction, and nothing stays.
    document = json.loads((out / "bundle.json").read_text())
    document["ple"]["eos"] += 1
    (out / "bundle.json").write_text(json.dumps(document))
    with engramsql.connect(tmp_path / "db3") as db:
        refuses(lambda: db.register("b", out), "hash constants", "bundle.json")
        assert db.tables() == []
    document["ple"]["eos"] -= 1
    document["memory"]["store"]["rows_per_shard"] -= 1
    (out / "bundle.json").write_text(json.dumps(document))
    with engramsql.connect(tmp_path / "db3") as db:
        refuses(lambda: db.register("b", out), "rows_per_shard")


def test_a_bundle_of_ours_opens_there(tmp_path: Path) -> None:
    """A table of released geometry in a sparse store: the peer hashes and reads what we hash and read."""
    engramdb_bundle = pytest.importorskip("engramdb.bundle")
    from engramsql.demo.sparse import SparseError, require_sparse

    try:
        require_sparse(tmp_path)
    except SparseError as error:
        pytest.skip(f"no sparse files here: {error}")
    spec = Spec.released_qwen_ple()
    rows = spec.table_rows
    per_shard = 2_500_012
    (tmp_path / "rows").mkdir()
    tokens = [1000, 99999, 42]
    ids = spec.rowids(tokens)
    data = np.random.default_rng(0).integers(0, 120, (*ids.shape, 160), dtype=np.uint8)
    for shard in range(rows // per_shard):
        with open(tmp_path / "rows" / f"shard_{shard:03d}.bin", "wb") as file:
            file.truncate(per_shard * 160)
            for rowid, row in zip(ids.reshape(-1), data.reshape(-1, 160), strict=True):
                if rowid // per_shard == shard:
                    file.seek(int(rowid % per_shard) * 160)
                    file.write(row.tobytes())
    with engramsql.connect(tmp_path / "db") as db:
        db.register(
            "ple", tmp_path / "rows", spec=spec.name, format="fp8_e4m3", scale=0.5, width=160, rows_per_shard=per_shard
        )
        db.build_view("v", "ple", tokens)
        out = db.export_view("v", tmp_path / "out", indexes=["v2"])
        e_t = db.table("ple").e_t(tokens)
    manifest = engramdb_bundle.BundleManifest.load(out / "bundle.json")
    assert manifest.validate() == []
    bundle = read_bundle(out / "bundle.json")
    assert bundle.is_hashed_as(spec)
    assert bundle.store is not None
    assert bundle.store.samefile(tmp_path / "rows")
    with engramsql.connect(out) as db:
        assert [view.name for view in db.record_views()] == ["ple_view"]
        assert db.table("ple").e_t(tokens).tobytes() == e_t.tobytes()
        assert (db.view("ple_view").lookup(ids) >= 0).all()
    from engramdb.disk_slot_index import DiskSlotIndex

    slots = DiskSlotIndex(str(out / "slot_index_v2")).to_slots(ids)
    records = np.fromfile(out / "v.bin", np.uint8).reshape(-1, 2560)
    assert np.array_equal(records[slots].reshape(data.shape), data)
    memory = manifest.open_memory()
    assert memory is not None
