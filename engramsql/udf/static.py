"""Makes the SQL functions part of DuckDB itself, where DuckDB (>= 2.0) allows it.

A statically registered extension is in every database that is opened afterwards: no LOAD, no setting. What is
registered is the copy inside the compiled module, so that SQL runs on the engine that Python uses; the extension file
is for other clients, older DuckDBs and databases opened before.

Registering must happen after DuckDB is imported and before it opens a database, while importing DuckDB here would cost
every start of the command line a tenth of a second. So a finder waits for the import and steps aside once it has
happened; a mere question whether DuckDB is installed is no import.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["register_with_duckdb"]

# The first DuckDB that exports duckdb_register_static_extension.
_FIRST_VERSION = 2


def register_with_duckdb() -> None:
    """Registers the extension now if DuckDB is imported, else right after it will be."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None:
        _register(duckdb)
    elif not any(isinstance(finder, _DuckDBFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DuckDBFinder())


class _DuckDBFinder:
    """Finds DuckDB where the other finders do, and registers the extension when it has been imported."""

    def __init__(self) -> None:
        # Set while the other finders are asked; per thread, or a second thread would get DuckDB without the functions.
        self._asking = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "duckdb" or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.now = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _register(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _register(duckdb: ModuleType) -> None:
    version = str(getattr(duckdb, "__version__", "0"))
    major = version.split(".", 1)[0]
    if not major.isdigit() or int(major) < _FIRST_VERSION:
        return
    import _duckdb

    from engramsql.errors import EngramWarning

    refusal: str | None
    try:
        from engramsql.engine import register_static

        refusal = register_static(_duckdb.__file__)
    except ImportError as error:  # must not make importing DuckDB fail
        refusal = str(error)
    if refusal is not None:
        warnings.warn(f"SQL functions only after LOAD: {refusal}", EngramWarning, stacklevel=2)
