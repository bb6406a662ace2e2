"""The pages of the functions are what the registry says; their outputs and those of the cookbook are real."""

from __future__ import annotations

from pathlib import Path

import pytest
import reference

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_the_pages_of_the_functions_are_current(pages):
    there = {"sql.md", "cookbook.md"} | {f"functions/{page.name}" for page in (DOCS / "functions").glob("*.md")}
    assert there == set(pages), "run `make reference`"
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run `make reference`"


def test_the_index_links_to_every_page(pages):
    for name in pages.keys() - {"sql.md", "cookbook.md"}:
        assert f"]({name})" in pages["sql.md"], name
