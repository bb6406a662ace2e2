"""What libraries raise over damaged files."""

from __future__ import annotations

import tokenize
import zlib

__all__ = ["DAMAGED"]

DAMAGED = (ValueError, EOFError, OverflowError, RuntimeError, SyntaxError, tokenize.TokenError, zlib.error)
"""What NumPy, json, zipfile and pyarrow raise over damaged files, deeply nested ones (RecursionError) included."""
