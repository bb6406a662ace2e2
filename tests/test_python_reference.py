"""docs/python.md names what is there, with the signatures it has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import engramsql
from engramsql import engine, udf
from engramsql.engine import Prefetch, Spec, Table, View

PAGE = Path(__file__).parent.parent / "docs" / "python.md"
RECORDS = (
    "TableEntry",
    "ViewEntry",
    "SqlViewEntry",
    "Finding",
    "Comparison",
    "Difference",
    "Orphan",
    "ShardInfo",
    "HeadInfo",
    "HeadProfile",
    "PathStats",
    "CacheUsage",
)


def entries(title: str) -> list[tuple[str, str]]:
    """(what is named, all of the entry) of the list under a heading; an entry may go on over several lines."""
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    items = re.findall(r"^- .*(?:\n  .*)*", section, re.MULTILINE)
    whole = [" ".join(item[2:].split()) for item in items]
    return [(re.match(r"(?:`[^`]+`(?:, )?)+", item)[0], item) for item in whole]  # type: ignore[index]


def named(title: str) -> list[str]:
    return [name for names, _ in entries(title) for name in re.findall(r"`([^`]+)`", names)]


def public(thing: object) -> list[str]:
    return sorted(getattr(thing, "__all__", None) or [name for name in dir(thing) if not name.startswith("_")])


def as_written(owner: object, name: str) -> str:
    """A name as the page writes it: with its parameters if it is a function, without types and ``self``."""
    value = getattr(owner, name)
    if isinstance(value, type) or not callable(value):
        return name
    signature = inspect.signature(value)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values() if p.name != "self"]
    # The compiled methods say that self is positional only.
    kinds = {inspect.Parameter.POSITIONAL_ONLY: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    bare = [p.replace(kind=kinds.get(p.kind, p.kind)) for p in bare]
    return f"{name}{inspect.Signature(bare)}"


@pytest.mark.parametrize(
    "title, owner",
    [
        ("`engramsql`", engramsql),
        ("`Database`", engramsql.Database),
        ("`Table`", Table),
        ("`View`", View),
        ("`Prefetch`", Prefetch),
        ("`Spec`", Spec),
        ("`engramsql.engine`", engine),
        ("`engramsql.udf`", udf),
    ],
)
def test_the_page_names_what_is_there(title: str, owner: object) -> None:
    written = sorted(named(title))
    made_by_package = {"Session", "ViewBuilder", "Probe", "ProbeReading", "probe_rate", "register_static"}
    expected = [name if name in made_by_package else as_written(owner, name) for name in public(owner)]
    assert written == sorted(expected)


def test_the_page_names_the_fields_of_the_records() -> None:
    found = {names.strip("`"): item for names, item in entries("Records")}
    assert tuple(found) == RECORDS
    for name, item in found.items():
        fields = re.findall(r"`([^`]+)`", item)[1:]
        assert sorted(fields) == public(getattr(engine, name)), name
