"""The user's own editor, for a statement."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from engramsql.errors import ArgumentError

__all__ = ["edited"]


def edited(text: str) -> str:
    """What is left of a text when the user's editor, VISUAL or EDITOR or vi, has ended.

    Raises:
        ArgumentError: If the editor failed, or left nothing that can be taken over.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="engramsql-") as directory:
        path = Path(directory) / "statement.sql"
        path.write_bytes(text.encode(errors="surrogateescape"))
        if code := subprocess.call(f"{editor} {shlex.quote(str(path))}", shell=True):
            raise ArgumentError(f"'{editor}' ended with exit code {code}; nothing was taken over")
        try:
            # An editor may put a mark before the text, and end lines in its own way.
            left = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ArgumentError(f"'{editor}' left no file: {error.strerror}; nothing was taken over") from error
        except UnicodeDecodeError as error:
            raise ArgumentError(f"what '{editor}' left is not UTF-8: {error.reason}; nothing was taken over") from error
    return left.strip()
