"""What arguments of commands are read with."""

from __future__ import annotations

import argparse

import pytest

from engramsql._arguments import MOST, count, number


def test_numbers_are_read_as_they_are_written() -> None:
    assert [number(text) for text in ("0", "17", "007", str(MOST))] == [0, 17, 7, MOST]
    assert [count("1"), number("5", 2, 5)] == [1, 5]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "'' is no number of at least 1"),
        ("0", "'0' is no number of at least 1"),
        ("-1", "'-1' is no number of at least 1"),
        ("1.5", "'1.5' is no number of at least 1"),
        ("\u0661", "is no number of at least 1"),
        ("9223372036854775808", "is more than 9223372036854775807"),
        # More digits than Python reads.
        ("9" * 5000, "is more than 9223372036854775807"),
    ],
)
def test_anything_else_is_refused_with_what_it_is(text: str, told: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        count(text)
    assert told in str(caught.value)
