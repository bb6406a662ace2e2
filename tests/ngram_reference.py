"""The n-grams of two hash families, and the row ids of one, in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from checkpoints import primes_from, qwen_multipliers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Gram(NamedTuple):
    """What one head hashes at one token."""

    token: int
    head: int
    rowid: int
    ngram: tuple[int, ...]


# The small FP8 checkpoint: bigrams and trigrams, eight heads each.
EOS, VOCAB, ORDERS = 1, 512, [2] * 8 + [3] * 8
SIZES = primes_from(50, 16)
OFFSETS = [sum(SIZES[:head]) for head in range(16)]


def qwen_windows(tokens: Sequence[int], history: Sequence[int] = ()) -> list[list[int]]:
    """The last three ids that each token's hash sees, oldest first: an EOS hides what is older from its successors."""
    windows = []
    everything = [*history, *tokens]
    for place in range(len(history), len(everything)):
        window = [everything[place]]
        for before in (place - 1, place - 2):
            hidden = before < 0 or EOS in window[1:] or everything[before] == EOS
            window.append(EOS if hidden else everything[before])
        windows.append(window[::-1])
    return windows


def qwen_grams(tokens: Sequence[int], history: Sequence[int] = ()) -> list[Gram]:
    """All n-grams of a sequence under the small FP8 checkpoint's spec."""
    multipliers = qwen_multipliers(3, VOCAB)
    grams = []
    for token, window in enumerate(qwen_windows(tokens, history)):
        for head, order in enumerate(ORDERS):
            ngram = window[-order:]
            mixed = 0
            for id_, multiplier in zip(reversed(ngram), multipliers, strict=False):
                mixed ^= id_ * multiplier
            grams.append(Gram(token, head, mixed % SIZES[head] + OFFSETS[head], tuple(ngram)))
    return grams


def corpus_grams(corpus: Iterable[Sequence[int] | None]) -> list[Gram]:
    """The n-grams of every sequence."""
    return [gram for tokens in corpus if tokens is not None for gram in qwen_grams(tokens)]
