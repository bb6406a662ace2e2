"""Exit codes of the command line, as docs/cli.md lists them."""

from __future__ import annotations

__all__ = ["DIFFERENT", "ERROR", "GOOD", "INTERRUPTED", "USAGE", "VOID"]

GOOD = 0
ERROR = 1
USAGE = 2
VOID = 3
"""A measurement that did not prove itself: nothing of it is published."""
DIFFERENT = 4
"""A verification found something that is not what it should be."""
INTERRUPTED = 130
"""By Ctrl-C: 128 and the number of the signal, as shells have it."""
