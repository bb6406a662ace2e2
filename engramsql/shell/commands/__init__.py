"""The dot commands. Importing the package fills the registry."""

from __future__ import annotations

from engramsql.shell.commands import catalog, display, files, leaving, pictures, registry, statements

__all__ = ["catalog", "display", "files", "leaving", "pictures", "registry", "statements"]
