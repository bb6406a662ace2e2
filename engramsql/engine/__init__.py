"""The one seam to the compiled engine; nothing else imports ``engramsql.engine._native``.

What may be asked of it: a Session (the catalog of a database directory), a Table (rows and vectors as NumPy arrays), a
Spec (hash constants and row ids), ``decode`` for bytes in memory, ``token_map`` of a tokenizer, ``default_name`` and
``stray_files`` of a source, a Probe (what this machine can do with a table's files) and ``probe_rate``, and the records
they hand out.
"""

from __future__ import annotations

from engramsql.engine._native import (
    ENGINE_VERSION,
    FAMILIES,
    FORMATS,
    HeadInfo,
    Probe,
    ProbeReading,
    Session,
    ShardInfo,
    Spec,
    Table,
    TableEntry,
    ViewEntry,
    decode,
    default_name,
    probe_rate,
    stray_files,
    token_map,
)

__all__ = [
    "ENGINE_VERSION",
    "FAMILIES",
    "FORMATS",
    "HeadInfo",
    "Probe",
    "ProbeReading",
    "Session",
    "ShardInfo",
    "Spec",
    "Table",
    "TableEntry",
    "ViewEntry",
    "decode",
    "default_name",
    "probe_rate",
    "stray_files",
    "token_map",
]
