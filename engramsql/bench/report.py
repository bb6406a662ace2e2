"""The results for people: one aligned table per measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engramsql.bench.measure import Result, Section

__all__ = ["lines"]

_RATES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def lines(document: dict[str, Any], sections: list[Section]) -> list[str]:
    """Everything, as lines."""
    machine, table = document["machine"], document["table"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    load = document["load_average"]
    out = [
        f"machine: {machine['cpu']}, {machine['cores']} cores, {machine['kernel']} kernels, {machine['system']}",
        f"versions: {versions}",
        f"load average: {load['before'][0]:.2f} before, {load['after'][0]:.2f} after",
        f"table: {table['table']}: {table['rows']} rows x {table['row_bytes']} bytes in {table['shards']} shards",
        f"format: {table['format'] or 'not known'}, spec: {table['spec'] or 'not known'}",
    ]
    for section in sections:
        out += ["", section.title, *(f"  ({note})" for note in section.notes)]
        if section.results:
            out += _table(section.results)
    out += _serving(document)
    return out


def _table(results: list[Result]) -> list[str]:
    rows = [("", "us each", "lowest", "highest", "rate", "times as fast as", "code path")]
    for r in results:
        ratios = ", ".join(f"{_short(name)} {ratio:.2f}" for name, ratio in r.ratios.items())
        if "peak_over_result" in r.extra:
            ratios += f"; peak memory {r.extra['peak_over_result']:.2f} x result"
        low, median, high = _us(r.lowest_us), _us(r.median_us), _us(r.highest_us)
        rows.append((r.name, median, low, high, _rate(1e6 / r.median_us, r.unit), ratios, r.code_path))
    widths = [max(len(row[k]) for row in rows) for k in range(7)]
    out = []
    for row in rows:
        cells = [
            cell.rjust(w) if 1 <= k <= 4 else cell.ljust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        out.append("  " + "  ".join(cells).rstrip())
    return out


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
    plural = {"query": "queries"}.get(unit, f"{unit}s")
    return f"{per_second / factor:.2f} {prefix}{' ' if prefix else ''}{plural}/s"


def _serving(document: dict[str, Any]) -> list[str]:
    out = []
    if (budget := document.get("budget")) is not None:
        out += ["", f"budget: {budget['budget_us']:g} us per token of {budget['heads']} rows"]
        for line in budget["per_token"]:
            verdict = "pass" if line["passes"] else "FAIL"
            hot = " (hot: says nothing about a cold read)" if line["measurement"] == "hot" else ""
            step = "one decode step" if line["rows"] == budget["heads"] else f"{line['tokens']:g} tokens at once"
            out.append(
                f"  {verdict}  {line['measurement']}, {line['name']}, {step}: {line['us_per_token']:.1f} us per token, "
                f"slowest {line['highest_us_per_token']:.1f}{hot}"
            )
    if (lead := document.get("lead_time")) is not None:
        verdict = "pass" if lead["passes"] else "FAIL"
        read, slowest, layer = lead["read_us"], lead["highest_read_us"], lead["layer"]
        needed, for_slowest = lead["layers_ahead"], lead["layers_ahead_of_the_slowest"]
        out += [
            "",
            f"lead time: a cold decode step takes {read:.1f} us (slowest {slowest:.1f})",
            f"a layer takes {lead['layer_us']:g} us, so the read must start {needed} layers ahead ({for_slowest})",
            f"  {verdict}  {layer} layers run before layer {layer}",
        ]
    return out
