"""A corpus cut into what becomes batches: stretches of tokens with their place and history, or whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engramsql.errors import ArgumentError, TokenIdError
from engramsql.export.files.source import next_cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.corpus import Piece

__all__ = ["Stretch", "checked", "stretches", "whole"]


class Stretch(NamedTuple):
    """Tokens that become one batch: sequences one after the other, the first and last perhaps in part."""

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Where each sequence begins, int64; the first is 0."""
    numbers: NDArray[np.int64]
    """Row or line of each sequence in its file, or its number in the corpus; 0-based."""
    before: int
    """Tokens of the first sequence that are in stretches before."""
    tail: NDArray[np.int64]
    """The last of them that are the history of the first token, and what was given as history."""
    file: str | None


def stretches(
    pieces: Iterable[Piece], step: int, history_len: int, given: NDArray[np.int64], first: int, rows_per_file: int
) -> Iterator[Stretch]:
    """A corpus in stretches of at most ``step`` tokens of one file, from token ``first`` on."""
    at = before = 0
    tail = given
    counted = -1
    for tokens, starts, continues, numbers, file in pieces:
        own = _numbers(numbers, counted + (not continues), len(starts))
        counted = int(own[-1])
        if not continues:
            before, tail = 0, given
        # What was exported by an earlier run is only walked over, for its history.
        begin = min(max(0, first - at), len(tokens))
        if begin:
            before, tail = _after(tokens[:begin], starts[starts < begin], before, tail, history_len, given)
        while begin < len(tokens):
            end = min(begin + step, len(tokens), next_cut(at + begin, rows_per_file) - at)
            low, high = (int(position) for position in np.searchsorted(starts, [begin, end]))
            inside = low == len(starts) or starts[low] != begin
            if not inside and (low > 0 or begin > 0):
                before, tail = 0, given
            inner = starts[low:high] - begin
            part_starts = np.concatenate([[0], inner]).astype(np.int64) if inside else inner
            part_numbers = own[low - inside : high].astype(np.int64)
            part = tokens[begin:end]
            yield Stretch(part, part_starts, part_numbers, before, tail, _name_of(file))
            before, tail = _after(part, part_starts, before, tail, history_len, given)
            begin = end
        at += len(tokens)


def _after(
    tokens: NDArray[np.int64],
    starts: NDArray[np.int64],
    before: int,
    tail: NDArray[np.int64],
    history_len: int,
    given: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:
    """Tokens of the sequence in progress that are past, and the history they leave."""
    last = int(starts[-1]) if len(starts) else 0
    if last > 0:
        before, tail = 0, given
    rest = tokens[last:]
    if history_len:
        tail = np.concatenate([tail, rest[-history_len:]])[-history_len:]
    return before + len(rest), tail


def whole(pieces: Iterable[Piece], most: int, refuse: Callable[[str, int], ArgumentError]) -> Iterator[Stretch]:
    """The sequences of a corpus one by one, each whole."""
    parts: list[NDArray[np.int64]] = []
    number, name, length = 0, None, 0
    counted = -1
    none = np.empty(0, np.int64)

    def made() -> Stretch:
        tokens = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Stretch(tokens, np.zeros(1, np.int64), np.array([number], np.int64), 0, none, name)

    for tokens, starts, continues, numbers, file in pieces:
        own = _numbers(numbers, counted + (not continues), len(starts))
        counted = int(own[-1])
        ends = [*starts[1:].tolist(), len(tokens)]
        for index, (begin, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            if not (index == 0 and continues):
                if parts:
                    yield made()
                parts, number, name, length = [], int(own[index]), _name_of(file), 0
            parts.append(tokens[begin:end])
            length += end - begin
            if length > most:
                raise refuse(f"{file} {number + 1}" if file else f"sequence {number}", most)
    if parts:
        yield made()


def _numbers(numbers: NDArray[np.int64] | None, first: int, count: int) -> NDArray[np.int64]:
    """0-based number of each sequence: in its file, or counted."""
    return np.arange(first, first + count, dtype=np.int64) if numbers is None else numbers - 1


def _name_of(file: str) -> str | None:
    """The path in a piece's ``file``, which says what its numbers count too."""
    return file[1 : file.rindex("'")] if file else None


def checked(pieces: Iterable[Piece], vocab_size: int) -> Iterator[Piece]:
    """The pieces as they are; a token in memory that is outside the vocabulary is refused with its place.

    ``within`` does so for files, and the engine would count from the beginning of a stretch.

    Raises:
        TokenIdError: For the first such token, with its sequence and position (0-based).
    """
    counted, before = -1, 0
    for piece in pieces:
        tokens, starts, continues, *_ = piece
        first = counted + (not continues)
        if not continues:
            before = 0
        if not piece.file and len(tokens) and (tokens.min() < 0 or tokens.max() >= vocab_size):
            at = int(np.argmax((tokens < 0) | (tokens >= vocab_size)))
            sequence = int(np.searchsorted(starts, at, side="right")) - 1
            position = at - int(starts[sequence]) + (before if sequence == 0 else 0)
            raise TokenIdError(
                f"sequence {first + sequence}: token id {tokens[at]} at position {position} is outside the vocabulary "
                f"(0 to {vocab_size - 1})"
            )
        before = len(tokens) - int(starts[-1]) + (before if len(starts) == 1 else 0)
        counted = first + len(starts) - 1
        yield piece
