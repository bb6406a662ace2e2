"""Keyed access: statements that name row ids read those rows and no others.

A registered table is a view over all its row ids. This package rewrites the text of a statement before DuckDB sees
it: a reference to a table becomes a derived table over the row ids that the statement can use, found from its
predicates and joins. The predicates stay, so the rewritten statement means the same; what is not understood is left as
it was written.
"""

from __future__ import annotations

from engramsql.planner.planner import Planner

__all__ = ["Planner"]
