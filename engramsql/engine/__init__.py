"""The one seam to the compiled engine; nothing else imports ``engramsql.engine._native``.

What may be asked of it: a Session (the catalog of a database directory), a Table (rows and vectors as NumPy arrays), a
Spec (hash constants and row ids), ``decode`` for bytes in memory, ``token_map`` of a tokenizer, ``default_name`` and
``stray_files`` of a source, ``register_static`` for the SQL functions that the module holds, the settings of the engine
(``set_ram_budget``, ``set_reader``, ``set_threads``) and what it says of itself (``cache_usage``, ``kernel``,
``threads``), a Probe (what this machine can do with a table's files) and ``probe_rate``, and the records they hand out.
"""

from __future__ import annotations

from engramsql.engine._native import (
    ENGINE_VERSION,
    FAMILIES,
    FORMATS,
    CacheUsage,
    HeadInfo,
    Orphan,
    PathStats,
    Prefetch,
    Probe,
    ProbeReading,
    Session,
    ShardInfo,
    Spec,
    SqlViewEntry,
    Table,
    TableEntry,
    ViewEntry,
    cache_usage,
    decode,
    default_name,
    kernel,
    probe_rate,
    register_static,
    set_ram_budget,
    set_reader,
    set_threads,
    stray_files,
    threads,
    token_map,
)

__all__ = [
    "ENGINE_VERSION",
    "FAMILIES",
    "FORMATS",
    "CacheUsage",
    "HeadInfo",
    "Orphan",
    "PathStats",
    "Prefetch",
    "Probe",
    "ProbeReading",
    "Session",
    "ShardInfo",
    "Spec",
    "SqlViewEntry",
    "Table",
    "TableEntry",
    "ViewEntry",
    "cache_usage",
    "decode",
    "default_name",
    "kernel",
    "probe_rate",
    "register_static",
    "set_ram_budget",
    "set_reader",
    "set_threads",
    "stray_files",
    "threads",
    "token_map",
]
