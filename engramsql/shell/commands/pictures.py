"""Pictures of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.plot.options import KINDS, shell_parser
from engramsql.shell.commands.registry import command

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []


@command(
    ".plot",
    f"{'|'.join(KINDS)} ...",
    summary="a picture of a table, of a read, or of a bench",
    argument="text",
    fewest=1,
    most=1000,
    details=f"{'; '.join(f'{kind}: {about}' for kind, about in KINDS.items())}. "
    "The arguments are those of `engramsql plot`: .plot norms TABLE. .plot KIND --help lists "
    "those of a kind.",
    parser=shell_parser,
)
def _plot(session: Session, words: list[str]) -> None:
    from engramsql.plot.drawing import command as plot

    session.work(lambda to: plot(session.database, words, to.file, to.style))
