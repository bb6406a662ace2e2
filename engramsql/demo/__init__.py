"""The demo: two tables of released geometry in sparse files, registered in place and queried.

>>> import engramsql.demo
>>> engramsql.demo.run("engramsql-demo")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np

import engramsql
from engramsql._directory import CATALOG_FILE, CATALOG_TEMPORARY
from engramsql.demo import checkpoints
from engramsql.demo.sparse import SparseError, SparseRows, apparent_and_taken_bytes, pseudo_rows, require_sparse
from engramsql.engine import Spec
from engramsql.errors import ArgumentError

TOKENS = [248044, 1000, 99999, 42]
"""Tokens of the PLE query."""

V41_TOKENS = [3, 1000, 99000, 42]
"""Tokens of the V4.1 query; its vocabulary is smaller."""

_MARKER = "demo.json"
_UNFINISHED = ".unfinished"
_VERSION = 1
_NEEDED_BYTES = 64 << 20


def run(directory: str | Path = "engramsql-demo", *, out: TextIO | None = None) -> None:
    """Builds the demo database in ``directory`` (or opens the one that is there) and runs its queries.

    Raises:
        SparseError: the file system has no sparse files or too little room.
        ArgumentError: the directory holds something that is not the demo.
    """
    out = sys.stdout if out is None else out
    root = Path(directory)
    built = prepare(root, out=out)
    apparent, taken = apparent_and_taken_bytes(root / "checkpoints")
    print(
        f"{'built' if built else 'found'} two checkpoints of released size in {root}: "
        f"{apparent / 1e9:.1f} GB apparent, sparse: {taken / 1e6:.1f} MB on disk.\n"
        "Names and geometry are the releases'; the bytes, and the V4.1 tokenizer, are synthetic. Rows that were not "
        "written are zeros: what looks at whole tables (profile, plot norms) sees hardly anything else.",
        file=out,
    )
    with engramsql.connect(root) as db:
        for table, tokens in (("ple", TOKENS), ("v41_l1", V41_TOKENS)):
            _show(db, f"SELECT * FROM engram_fetch('{table}', rowids_for_seq('{table}', {tokens}))", out)
        _show(db, "SELECT name, spec, layer, rows, dim, format, row_bytes, heads, shards FROM engram_tables()", out)
    print(f"\nGo on with: {_program()} {root} -c \"SELECT * FROM engram_fetch('ple', [1876085, 31308566])\"", file=out)


def _program() -> str:
    """How to call the program again: by its path where no PATH has it, as before an environment is activated."""
    if shutil.which("engramsql") is not None:
        return "engramsql"
    called = sys.argv[0]
    return (
        shlex.quote(called)
        if os.path.basename(called) == "engramsql"
        else f"{shlex.quote(sys.executable)} -m engramsql"
    )


def prepare(root: Path, *, out: TextIO | None = None) -> bool:
    """Makes the demo database at ``root`` unless it is already there; True if it was built now.

    Registration times are printed to ``out``.
    """
    marker, folder = root / _MARKER, root / "checkpoints"
    if marker.is_file():
        version = json.loads(marker.read_text()).get("version")
        if version != _VERSION:
            raise ArgumentError(
                f"'{root}' holds version {version} of the demo and this is version {_VERSION}; "
                "remove the directory or name another one",
            )
        return False
    if root.exists() and not root.is_dir():
        raise ArgumentError(f"'{root}' is a file; name a directory for the demo")
    if (folder / _UNFINISHED).is_file():
        # A build that was interrupted: only what it made can be here, and it is made again.
        shutil.rmtree(folder)
        (root / CATALOG_FILE).unlink(missing_ok=True)
    if root.is_dir() and any(not p.name.startswith(CATALOG_TEMPORARY) for p in root.iterdir()):
        raise ArgumentError(f"'{root}' is not empty and holds no demo; name an empty or a new directory for the demo")
    root.mkdir(parents=True, exist_ok=True)
    require_sparse(root)
    free = shutil.disk_usage(root).free
    if free < _NEEDED_BYTES:
        raise SparseError(
            f"the demo needs {_NEEDED_BYTES >> 20} MB of real room and '{root}' has {free >> 20} MB free",
        )
    # Connected first: only an empty directory becomes a database.
    with engramsql.connect(root) as db:
        folder.mkdir()
        (folder / _UNFINISHED).touch()
        qwen = checkpoints.build_qwen(folder / "qwen3.8-flash-next")
        values, scales = checkpoints.build_v41(folder / "deepseek-v4.1")
        _fill(qwen, values, scales)
        for name, source in (("ple", "qwen3.8-flash-next"), ("v41", "deepseek-v4.1")):
            start = time.perf_counter()
            db.register(name, folder / source)
            if out is not None:
                print(f"registered {name} in place in {_seconds(start)}", file=out)
    marker.write_text(json.dumps({"version": _VERSION, "tables": ["ple", "v41_l1", "v41_l14"]}))
    (folder / _UNFINISHED).unlink()
    return True


def _fill(qwen: SparseRows, values: list[SparseRows], scales: list[SparseRows]) -> None:
    """Writes the rows that the demo's queries touch; all others stay holes and read as zero bytes."""
    ids = Spec.from_config("qwen_ple_v1", checkpoints.QWEN_CONFIG, 1, None).rowids(TOKENS)
    ids = np.unique(np.asarray(ids, dtype=np.int64))
    qwen.write(ids, pseudo_rows(1, ids, qwen.row_bytes))
    token_map = checkpoints.synthetic_token_map()
    for k, layer in enumerate(checkpoints.V41_LAYERS):
        spec = Spec.from_config("deepseek_v41", checkpoints.V41_CONFIG, layer, token_map)
        ids = np.unique(np.asarray(spec.rowids(V41_TOKENS), dtype=np.int64))
        values[k].write(ids, pseudo_rows(10 + k, ids, values[k].row_bytes))
        # Exponents near 2^-9, where a trained table's are; bytes 0 and 255 do not occur.
        exponents = 112 + pseudo_rows(20 + k, ids, scales[k].row_bytes) % 12
        scales[k].write(ids, exponents.astype(np.uint8))


def _show(db: Any, sql: str, out: TextIO, limit: int = 6) -> None:
    """Prints a query, its first rows with shortened vectors, and how long it took, first and again."""
    start = time.perf_counter()
    result = db.sql(sql)
    names = list(result.columns)
    rows = result.fetchall()
    first = _seconds(start)
    start = time.perf_counter()
    db.sql(sql).fetchall()
    again = _seconds(start)
    shown = [names] + [[_short(cell) for cell in row] for row in rows[:limit]]
    widths = [max(len(line[k]) for line in shown) for k in range(len(names))]
    print(f"\n{sql};", file=out)
    for line in shown:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip(), file=out)
    if len(rows) > limit:
        print(f"  ... {len(rows)} rows", file=out)
    # Holes cost no disk read, so neither figure says anything about a cold disk.
    print(f"  {first} the first time, {again} again", file=out)


def _short(cell: object) -> str:
    if isinstance(cell, (bytes, bytearray)):
        return f"{cell[:6].hex()}.. ({len(cell)} B)"
    if isinstance(cell, (list, tuple)):
        return "[" + ", ".join(f"{v:.4g}" for v in cell[:3]) + f", ..] ({len(cell)})"
    return "NULL" if cell is None else str(cell)


def _seconds(start: float) -> str:
    return f"{(time.perf_counter() - start) * 1e3:.1f} ms"


__all__ = ["TOKENS", "V41_TOKENS", "SparseError", "prepare", "run"]
