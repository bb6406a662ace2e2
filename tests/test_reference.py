"""docs/sql.md and docs/functions/ are what the registry says, and their examples run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def test_the_pages_of_the_functions_are_current(pages):
    there = {"sql.md"} | {f"functions/{page.name}" for page in (DOCS / "functions").glob("*.md")}
    assert there == set(pages), "run `make reference`"
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run `make reference`"


def test_the_index_links_to_every_page(pages):
    for name in pages.keys() - {"sql.md"}:
        assert f"]({name})" in pages["sql.md"], name
