"""A database in a notebook: HTML of the catalog that parses, with every name escaped, and without a read of rows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from golden_data import GOLDEN

import engramsql

VOID = {"br", "hr", "img", "meta"}


class Page(HTMLParser):
    """Texts by the tag they stand in; every tag must be closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in VOID
        assert tag in {"div", "p", "b", "i", "code", "table", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_tables_and_views_of_a_database(golden_db: Any, tmp_path: Path):
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        db.build_view("records", "ple", [[17, 4, 256]])
        db.create_view("norms", "SELECT rowid FROM ple")
        before = [stats.rows for stats in db.table("ple").stats()]
        page = Page(db._repr_html_())
        assert [stats.rows for stats in db.table("ple").stats()] == before, "no row was read"
        header, ple, views, records, norms = page.rows
        assert dict(zip(header, ple, strict=True)) == {
            "table": "ple",
            "rows": "1,408",
            "row bytes": "160",
            "format": "fp8_e4m3",
            "dim": "160",
            "spec": db.tables()[0].spec,
            "heads": "16",
            "shards": "4",
            "size": "225.3 KB",
            "source": str(GOLDEN / "ckpt_qwen4_exp_fp8"),
        }
        assert views[:3] == ["view", "kind", "table"]
        assert records[:4] == ["records", "materialised", "ple", "3"]
        assert norms[:2] == ["norms", "sql"]
        assert str(tmp_path / "db") in page.text
        assert repr(db).startswith("<Database ")


def test_names_are_escaped(tmp_path: Path):
    directory = tmp_path / "<script>alert('x') & \u8868"
    directory.mkdir()
    (directory / "shard_000.bin").write_bytes(bytes(160))
    with engramsql.connect(tmp_path / "<b>db") as db:
        db.register("t", directory, width=16, rows_per_shard=10)
        text = db._repr_html_()
        assert "<script>" not in text
        assert "<b>db" not in text
        assert text.isascii()
        page = Page(text)
        assert page.rows[1][-1] == str(directory)
        assert page.rows[1][3:6] == ["not known"] * 3
        assert "<b>db" in page.text


def test_an_empty_and_a_closed_database():
    with engramsql.connect() as db:
        assert "no tables" in Page(db._repr_html_()).text
    assert Page(db._repr_html_()).text.endswith(", closed")


def test_many_tables_are_counted(tmp_path: Path):
    (tmp_path / "shard_000.bin").write_bytes(bytes(160))
    with engramsql.connect() as db:
        for number in range(103):
            db.create_view(f"v{number}", "SELECT 1 AS x")
        page = Page(db._repr_html_())
        assert len(page.rows) == 101
        assert "103 in all, 100 shown" in page.text
