"""Pictures of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.shell.commands.registry import command

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []


@command(
    ".plot",
    "KIND ...",
    summary="a picture: values, norms, residency, plan or latency",
    argument="text",
    fewest=1,
    most=1000,
    details="The arguments are those of `engramsql plot`.",
)
def _plot(session: Session, words: list[str]) -> None:
    from engramsql import plot

    session.work(lambda to: plot.command(session.database, words, to.file, to.style))
