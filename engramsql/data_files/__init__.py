"""Files of integers of every kind, opened and read in pieces: what corpora, row ids and keys are read with.

Columns are in Parquet and Arrow IPC (``columns``), arrays in NumPy files and safetensors (``arrays``), texts in CSV,
JSON lines and plain text (``texts``). Each reader bounds its memory, whatever the size of the file.
"""

from __future__ import annotations

import csv
import os
import re
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError
from engramsql.interchange.damaged import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KINDS", "kind_of", "named_errors", "only_ids", "what_was_meant"]

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
}
"""Endings of names, and what the file is."""
# What is no name of a file: ids with commas, spaces or brackets.
_ONLY_IDS = re.compile(r"[\s,\[\]]*[0-9]+[\s,\[\]0-9]*")
_ID = re.compile("[0-9]+")
# In SQL a name without an ending is a table or view, and words are a text.
_NO_FILE = (
    "; e_t of a view or query v is a query: SELECT t.token, t.e_t FROM v, engram_embeddings('ple', v.tokens) AS t "
    "(export --sql, or export(db.sql(...), path)), and the tokens of a text are engram_tokens('ple', 'the text')"
)


def kind_of(path: str | os.PathLike[str], what: str = "tokens") -> str:
    """What a file is, by the ending of its name.

    Raises:
        ArgumentError: If it is not there, or the ending is not known.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ArgumentError(f"'{name}' does not exist; name a file of {what}{what_was_meant(name)}")
    kind = KINDS.get(os.path.splitext(name)[1].lower())
    if kind is None:
        raise ArgumentError(f"'{name}': the name of a file of {what} ends with one of {', '.join(KINDS)}")
    return kind


def what_was_meant(name: str) -> str:
    r"""What to add to the message about a file that is not there, where ids, a view or a text was written instead.

    Example:
        >>> what_was_meant("3,5")
        ": ids are read from files, such as one with an id in each line, ids.txt: printf '%s\\n' 3 5 > ids.txt"
        >>> what_was_meant("ids.txt")
        ''
    """
    if not only_ids(name):
        return "" if os.path.splitext(name)[1] or os.sep in name else _NO_FILE
    ids = " ".join(_ID.findall(name)[:8])
    return f": ids are read from files, such as one with an id in each line, ids.txt: printf '%s\\n' {ids} > ids.txt"


def only_ids(text: str) -> bool:
    """Whether it is one id or several, with commas, spaces or brackets, and no name.

    Example:
        >>> only_ids("[3, 5]"), only_ids("x3")
        (True, False)
    """
    return _ONLY_IDS.fullmatch(text) is not None


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Errors over a file as ours, with its name.

    Raises:
        ArgumentError: If it cannot be read or is damaged; our errors stay what they are.
    """
    try:
        yield
    except EngramError as error:
        raise error if name in str(error) else type(error)(f"'{name}': {error}") from None
    except OSError as error:
        raise ArgumentError(f"cannot read '{name}': {error.strerror or error}") from error
    except (*DAMAGED, zipfile.BadZipFile, KeyError, csv.Error) as error:
        raise ArgumentError(f"cannot read '{name}': {error}") from error
