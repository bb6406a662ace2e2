"""What the figures mean for serving: the budget of a token, and how many layers ahead its read must start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engramsql.bench.measure import Result, Section

__all__ = ["layers_ahead", "lead_time", "per_token"]


def layers_ahead(read_us: float, layer_us: float) -> int:
    """L* = ceil(read time / time per layer): so many layers before its rows are used a read must start to be hidden."""
    return math.ceil(read_us / layer_us)


def per_token(section: Section, heads: int, budget_us: float) -> list[dict[str, Any]]:
    """Of each fetch of at least one token: us per token (heads x us per row) against the budget, median and slowest.

    The first line, of exactly one token's rows, is a decode step; larger batches are several tokens at once.
    """
    return [
        {
            "measurement": section.name,
            "rows": result.units,
            "tokens": result.units / heads,
            "name": result.name,
            "us_per_row": result.median_us,
            "us_per_token": heads * result.median_us,
            "highest_us_per_token": heads * result.highest_us,
            "passes": heads * result.median_us <= budget_us,
            "slowest_passes": heads * result.highest_us <= budget_us,
            "code_path": result.code_path,
        }
        for result in _fetches(section)
        if result.units >= heads
    ]


def lead_time(section: Section, heads: int, layer_us: float, layer: int) -> dict[str, Any]:
    """The lead-time rule for one decode step, read cold: whether enough layers run before layer ``layer`` (0-based).

    Row ids are known before layer 0, so ``layer`` layers run while the rows are read.
    """
    step = next(result for result in _fetches(section) if result.units == heads)
    read_us, slowest_us = step.median_us * heads, step.highest_us * heads
    needed, needed_by_slowest = layers_ahead(read_us, layer_us), layers_ahead(slowest_us, layer_us)
    return {
        "read_us": read_us,
        "highest_read_us": slowest_us,
        "layer_us": layer_us,
        "layer": layer,
        "layers_ahead": needed,
        "layers_ahead_of_the_slowest": needed_by_slowest,
        "passes": layer >= needed,
        "slowest_passes": layer >= needed_by_slowest,
    }


def _fetches(section: Section) -> list[Result]:
    return [r for r in section.results if r.role == "engramsql" and r.name.startswith("Table.fetch")]
