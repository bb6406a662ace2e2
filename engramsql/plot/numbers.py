"""Numbers on axes."""

from __future__ import annotations

import math

__all__ = ["linear", "logarithmic", "short"]

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """A number of at most four digits, with a prefix for a large one.

    Example:
        >>> [short(value) for value in (0, 0.0125, 12.5, 1234, 2_500_000)]
        ['0', '0.0125', '12.5', '1234', '2.5M']
    """
    if value and abs(value) >= 10_000:
        factor, prefix = next((factor, prefix) for factor, prefix in _PREFIXES if abs(value) >= factor)
        return f"{value / factor:.4g}{prefix}"
    return f"{value:.4g}"


def linear(value: float, low: float, high: float) -> float:
    """Where ``value`` lies between ``low`` (0) and ``high`` (1)."""
    return (value - low) / (high - low) if high > low else 0.5


def logarithmic(value: float, low: float, high: float) -> float:
    """The same on a logarithmic axis."""
    return linear(math.log(value), math.log(low), math.log(high))
