"""Registering a source that may be a bundle of engramdb-python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.engine import Spec, default_name
from engramsql.errors import SourceError
from engramsql.interchange.bundle import find_bundle, read_bundle
from engramsql.messages import warn

if TYPE_CHECKING:
    from engramsql.engine import Session, TableEntry
    from engramsql.interchange.bundle import Bundle

__all__ = ["register", "register_unnamed"]

# What a bundle's store is called if nobody says it.
_UNNAMED = "ple"


def register(session: Session, name: str, source: str | os.PathLike[str], **options: Any) -> list[TableEntry]:
    """Registers a checkpoint, store or bundle; see :meth:`Database.register`."""
    manifest = find_bundle(source)
    if manifest is None:
        return session.register(name, source, **options)
    return _register_bundle(session, name, read_bundle(manifest), options)


def register_unnamed(session: Session, source: Path) -> None:
    """Registers a source under a name that fits it."""
    manifest = find_bundle(source)
    if manifest is None:
        session.register(default_name(source), source)
    else:
        _register_bundle(session, _UNNAMED, read_bundle(manifest), {})


def _register_bundle(session: Session, name: str, bundle: Bundle, options: dict[str, Any]) -> list[TableEntry]:
    if bundle.store is None:
        raise SourceError(
            f"'{bundle.path}' names a view and no store; register the table it was built from, and the view with "
            "Database.import_view() or engramsql view import"
        )
    told = {key: value for key, value in options.items() if value is not None}
    manifest = bundle.store_manifest()
    said: dict[str, Any] = {"width": bundle.width, "format": bundle.format}
    if not _is_one_shard(bundle, manifest):
        said["rows_per_shard"] = bundle.rows_per_shard
    if bundle.format is not None:
        said["scale"] = bundle.scale
    own_spec = bool(_object(manifest, "engramsql").get("spec"))
    if "spec" not in told and not own_spec:
        said["spec"] = _spec_of(bundle)
    entries = session.register(name, bundle.store, **{**said, **told})
    try:
        if own_spec:
            _require_same_hash(session, name, bundle)
        if bundle.view is not None:
            from engramsql.building import import_view

            import_view(
                session, f"{name}_view", bundle.view, name, None, bundle.slot_index, replace=False, progress=None
            )
    except BaseException:
        # Both or neither.
        session.drop(name)
        raise
    return entries


def _object(document: dict[str, Any], member: str) -> dict[str, Any]:
    value = document.get(member)
    return value if isinstance(value, dict) else {}


def _is_one_shard(bundle: Bundle, manifest: dict[str, Any]) -> bool:
    """Whether the store has one shard of the rows that the bundle says.

    The manifest then has the rows that a shard could hold, and the bundle those that the only one holds.
    """
    return bundle.shards == 1 and _object(manifest, "layout").get("total_rows") == bundle.rows_per_shard


def _require_same_hash(session: Session, name: str, bundle: Bundle) -> None:
    """Refuses a bundle that hashes in another way than its store says of itself."""
    spec = session.table(name).spec
    if spec is not None and not bundle.is_hashed_as(spec):
        raise SourceError(
            f"'{bundle.path}' has other hash constants than its store '{bundle.store}' says of itself; "
            "register the store alone, or export the bundle again"
        )


def _spec_of(bundle: Bundle) -> str | None:
    """Name of the released spec that hashes as the bundle does: what it says cannot be derived again otherwise."""
    spec = Spec.released_qwen_ple()
    rows = bundle.rows
    if bundle.is_hashed_as(spec) and rows is not None and rows >= spec.reachable_rows:
        return spec.name
    warn(
        f"'{bundle.path}' hashes as no released model does, so its table has rows and no spec: tokens cannot be turned "
        "into row ids; register it with a spec if it has one"
    )
    return None
