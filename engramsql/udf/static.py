"""Makes the SQL functions part of DuckDB itself, where DuckDB (>= 2.0) allows it.

A statically registered extension is in every database that is opened afterwards: no LOAD, no setting. That must happen
after DuckDB is imported and before it opens a database, while importing DuckDB here would cost every start of the command
line a tenth of a second. So a finder waits for the import and steps aside once it has happened.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

# The first DuckDB that exports duckdb_register_static_extension.
_FIRST_VERSION = 2


def register_with_duckdb() -> None:
    """Registers the extension now if DuckDB is imported, else right after it will be."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None:
        _register(duckdb)
    elif not any(isinstance(finder, _DuckDBFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DuckDBFinder())


class _DuckDBFinder(importlib.abc.MetaPathFinder):
    """Finds DuckDB where it is, and asks to be told when it has been imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "duckdb":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """DuckDB's own loader, and a registration afterwards."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _register(module)


def _register(duckdb: ModuleType) -> None:
    version = str(getattr(duckdb, "__version__", "0"))
    major = version.split(".", 1)[0]
    if not major.isdigit() or int(major) < _FIRST_VERSION:
        return
    from engramsql.errors import EngramWarning, ExtensionError
    from engramsql.udf import extension_path

    try:
        path = extension_path()
    except ExtensionError:
        return  # connect() says so when the functions are needed
    import ctypes

    import _duckdb

    try:
        register = ctypes.CDLL(str(path)).engramsql_register_static
    except (OSError, AttributeError) as error:
        warnings.warn(f"SQL functions only after LOAD: {error}", EngramWarning, stacklevel=2)
        return
    register.argtypes = [ctypes.c_char_p]
    register.restype = ctypes.c_char_p
    refusal: bytes | None = register(str(_duckdb.__file__).encode())
    if refusal is not None:
        reason = refusal.decode(errors="replace")
        warnings.warn(f"SQL functions only after LOAD: {reason}", EngramWarning, stacklevel=2)
