"""One run: the measurements asked for, in one order, published together or not at all."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.bench import machine, report
from engramsql.bench.budget import lead_time, per_token
from engramsql.bench.measure import Section, Void
from engramsql.bench.options import PEERS
from engramsql.bench.peers import require_peers
from engramsql.bench.progress import clear
from engramsql.bench.target import Target, open_target
from engramsql.engine import kernel, set_threads
from engramsql.errors import ArgumentError
from engramsql.exit_codes import GOOD, VOID
from engramsql.messages import say
from engramsql.publishing import is_stream, new_file

if TYPE_CHECKING:
    import argparse

__all__ = ["SCHEMA", "run"]

SCHEMA = 1
"""Version of the JSON document; see docs/performance.md."""


def run(options: argparse.Namespace) -> int:
    """Measures, prints, writes JSON if asked to.

    Returns:
        GOOD, or VOID if a read did not prove itself: nothing is printed on stdout or written then.
    """
    require_peers(options.against)
    if options.json is not None:
        _check_writable(options.json)
    before, started = os.getloadavg(), dt.datetime.now(dt.timezone.utc)
    try:
        with open_target(options) as target:
            if (options.budget_us or options.layer_us) and not target.heads:
                raise ArgumentError(
                    f"{target.label} has no hash spec, so a token's rows are not known; register it with a spec"
                )
            sections = [_measure(name, target, options) for name in options.measurements]
            document = _document(options, target, sections, before, started)
    except Void as void:
        clear()
        say(f"VOID: {void}; nothing is published")
        return VOID
    finally:
        set_threads(None)
        clear()
    print("\n".join(report.lines(document, sections)))
    if options.json is not None:
        _write(Path(options.json), document)
    return GOOD


def _measure(name: str, target: Target, options: argparse.Namespace) -> Section:
    """One measurement; its module is imported only now."""
    module: Any = importlib.import_module(f"engramsql.bench.{_MODULES.get(name, name)}")
    peers, repeats, threads = list(dict.fromkeys(options.against)), options.repeats, options.threads
    if name in ("cold", "hot"):
        batches = options.rows
        if target.heads and target.heads not in (batches or module.BATCHES) and (options.budget_us or options.layer_us):
            # A decode step is judged by a batch of its own size.
            batches = sorted({target.heads, *(batches or module.BATCHES)})
        arguments = (batches, peers, repeats) if name == "cold" else (batches, peers, threads, repeats)
        section: Section = module.run(target, *arguments)
    elif name == "hash":
        section = module.run(target, peers, repeats)
    elif name == "decode":
        section = module.run(target, repeats)
    elif name in ("build", "views", "export"):
        section = module.run(target, repeats, Path(options.dir))
    elif name == "index":
        section = module.run(peers, repeats, Path(options.dir))
    elif name in ("keyed", "inspect"):
        section = module.run(target, threads, repeats, Path(options.dir))
    else:
        section = module.run(target, threads, repeats)
    return section


_MODULES = {
    "hash": "hashing",
    "decode": "decoding",
    "build": "building",
    "index": "slot_index",
    "export": "exporting",
    "inspect": "inspecting",
}


def _document(
    options: argparse.Namespace,
    target: Target,
    sections: list[Section],
    before: tuple[float, float, float],
    started: dt.datetime,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "started": started.isoformat(timespec="seconds"),
        "command": {key: getattr(options, key) for key in ("measurements", "against", "rows", "threads", "repeats")},
        "machine": machine.description() | {"kernel": kernel()},
        "versions": machine.versions([PEERS[name] for name in options.against]),
        "load_average": {"before": list(before), "after": list(os.getloadavg())},
        "table": target.record(),
        "measurements": {section.name: section.record() for section in sections},
    }
    by_name = {section.name: section for section in sections}
    if options.budget_us:
        judged = [by_name[name] for name in ("cold", "hot") if name in by_name]
        lines = [line for section in judged for line in per_token(section, target.heads, options.budget_us)]
        document["budget"] = {"budget_us": options.budget_us, "heads": target.heads, "per_token": lines}
    if options.layer_us:
        document["lead_time"] = lead_time(by_name["cold"], target.heads, options.layer_us, options.layer)
    return document


def _check_writable(name: str) -> None:
    """Before measuring, which takes minutes.

    Raises:
        ArgumentError: If nothing can be written there.
    """
    given, path = Path(name), Path(os.path.realpath(name))
    if given.is_dir():
        raise ArgumentError(f"cannot write '{name}': it is a directory; name a file")
    if is_stream(given):
        writable = os.access(given, os.W_OK)
    elif path.parent.is_dir():
        writable = os.access(path.parent, os.W_OK)
    else:
        raise ArgumentError(f"cannot write '{name}': its directory does not exist")
    if not writable:
        raise ArgumentError(f"cannot write '{name}': permission denied; name a file in another directory")


def _write(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all; a link stays and what it names is written."""
    text = json.dumps(document, indent=1).encode() + b"\n"
    if is_stream(path):
        path.write_bytes(text)
        return
    with new_file(path, replace=True, parents=False) as file:
        file.write(text)
