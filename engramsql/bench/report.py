"""The results for people: per measurement one aligned table of at most 120 columns, two lines per figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from engramsql.bench.measure import plural

if TYPE_CHECKING:
    from engramsql.bench.measure import Result, Section

__all__ = ["WIDTH", "lines"]

WIDTH = 120
# A longer name has a line of its own.
_NAME_WIDTH = 60
_RATES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_LEGEND = (
    "Each figure: median, lowest and highest of its calls, in microseconds per row, token, value, byte or query. Below "
    "it the code path that was taken, and how it compares with others of this run: '0.90 x copy loop' is 0.90 times as "
    "fast as the copy loop, '3.00 x numpy' three times as fast as numpy."
)
_DEFERRED = "io_uring (deferred): the kernel completes reads only when the reading thread asks (DEFER_TASKRUN)."


def lines(document: dict[str, Any], sections: list[Section]) -> list[str]:
    """Everything, as lines."""
    machine, table = document["machine"], document["table"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    load = document["load_average"]
    cores = plural(machine["cores"], "core")
    size = (
        f"{plural(table['rows'], 'row')} x {plural(table['row_bytes'], 'byte')} in {plural(table['shards'], 'shard')}"
    )
    out = [
        *_wrapped(f"machine: {machine['cpu']}, {cores}, {machine['kernel']} kernels, {machine['system']}", "", "  "),
        *_wrapped(f"versions: {versions}", "", "  "),
        f"load average: {load['before'][0]:.2f} before, {load['after'][0]:.2f} after",
        # Never wrapped: it has a path.
        f"table: {table['table']}",
        f"  {size}, format: {table['format'] or 'not known'}, spec: {table['spec'] or 'not known'}",
    ]
    results = [result for section in sections for result in section.results]
    if results:
        out += ["", *_wrapped(_LEGEND, "", "")]
        if any("(deferred)" in result.code_path for result in results):
            out += _wrapped(_DEFERRED, "", "")
    for section in sections:
        out += ["", section.title]
        for note in section.notes:
            out += _wrapped(f"({note})", "  ", "   ")
        if section.results:
            out += _table(section.results)
    out += _serving(document)
    return out


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(results: list[Result]) -> list[str]:
    rows = [("", "median", "lowest", "highest", "unit", "rate")]
    for r in results:
        low, median, high = _us(r.lowest_us), _us(r.median_us), _us(r.highest_us)
        rows.append((r.name, median, low, high, f"us/{r.unit}", _rate(1e6 / r.median_us, r.unit)))
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    widths[0] = max(len(row[0]) for row in rows if len(row[0]) <= _NAME_WIDTH)
    out = []
    for k, (name, *figures) in enumerate(rows):
        if len(name) > _NAME_WIDTH:
            out.append(f"  {name}")
            name = ""
        cells = [name.ljust(widths[0])]
        cells += [
            # The unit belongs to what is left of it.
            cell.ljust(width) if column == 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(figures, widths[1:], strict=True))
        ]
        out.append("  " + "  ".join(cells).rstrip())
        if k > 0:
            out += _wrapped("; ".join(_remarks(results[k - 1])), "      ", "      ")
    return out


def _remarks(result: Result) -> list[str]:
    """Code path, ratios and memory: what stands below a figure."""
    found = [result.code_path] if result.code_path else []
    if result.ratios:
        found.append(", ".join(f"{ratio:.2f} x {_short(name)}" for name, ratio in result.ratios.items()))
    if "p90_us" in result.extra:
        found.append(f"9 of 10 within {_us(result.extra['p90_us'])} us")
    if "planner_us" in result.extra:
        share = result.extra["planner_us"] / result.median_us
        found.append(f"planner {_us(result.extra['planner_us'])} us, {share:.0%} of it")
    if "own_peak_bytes" in result.extra:
        peak, own = result.extra["peak_bytes"], result.extra["own_peak_bytes"]
        found.append(f"peak memory {peak / 1e6:.0f} MB, {own / 1e6:.0f} MB of it its own")
    if "peak_over_result" in result.extra:
        found.append(f"peak memory {result.extra['peak_over_result']:.2f} times the result")
    return found


def _short(name: str) -> str:
    """A limit by what it is, without the batch size that both share."""
    return name.removeprefix("limit: ").rsplit(", ", 1)[0] if name.startswith("limit: ") else name


def _us(value: float) -> str:
    return (
        f"{value:.1f}"
        if value >= 100
        else f"{value:.2f}"
        if value >= 10
        else f"{value:.4f}"
        if value >= 1e-2
        else f"{value:.6f}"
    )


def _rate(per_second: float, unit: str) -> str:
    factor, prefix = next(((f, p) for f, p in _RATES if per_second >= f), (1.0, ""))
    nouns = {"query": "queries"}.get(unit, f"{unit}s")
    return f"{per_second / factor:.2f} {prefix}{' ' if prefix else ''}{nouns}/s"


def _serving(document: dict[str, Any]) -> list[str]:
    out = []
    if (budget := document.get("budget")) is not None:
        out += ["", f"budget: {budget['budget_us']:g} us per token of {plural(budget['heads'], 'row')}"]
        for line in budget["per_token"]:
            hot = " (hot: says nothing about a cold read)" if line["measurement"] == "hot" else ""
            step = "one decode step" if line["rows"] == budget["heads"] else f"{line['tokens']:g} tokens at once"
            out += [
                f"  {line['measurement']}, {line['name']}, {step}{hot}",
                f"      median   {_verdict(line['passes'])}  {line['us_per_token']:.1f} us per token",
                f"      slowest  {_verdict(line['slowest_passes'])}  {line['highest_us_per_token']:.1f} us per token",
            ]
    if (lead := document.get("lead_time")) is not None:
        layer = lead["layer"]
        runs = f"{plural(layer, 'layer')} of {lead['layer_us']:g} us {'runs' if layer == 1 else 'run'}"
        out += ["", f"lead time: {runs} before layer {layer}, behind which the cold read of a decode step can hide"]
        for name, read, needed, passes in (
            ("median ", lead["read_us"], lead["layers_ahead"], lead["passes"]),
            ("slowest", lead["highest_read_us"], lead["layers_ahead_of_the_slowest"], lead["slowest_passes"]),
        ):
            ahead = f"{read:.1f} us, so it must start {plural(needed, 'layer')} ahead"
            out.append(f"      {name}  {_verdict(passes)}  {ahead}")
    return out


def _verdict(passes: bool) -> str:
    return "pass" if passes else "FAIL"
