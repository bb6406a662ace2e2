"""Scripts: statements and dot commands, one after the other until one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.errors import EngramError

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__ = ["StatementError", "run"]


class StatementError(EngramError):
    """A statement of a script failed; the cause is its ``__cause__``."""

    def __init__(self, number: int, count: int, reason: str) -> None:
        where = f"statement {number} of {count}: " if count > 1 else ""
        super().__init__(where + reason)


def run(session: Session, text: str) -> None:
    """Runs the statements and dot commands of a script; stops at the first error.

    Raises:
        StatementError: With the number of the statement and the message in one line.
    """
    from engramsql.shell.session import FailedError
    from engramsql.shell.statements import parse

    pieces = parse(text).all
    for number, piece in enumerate(pieces, start=1):
        try:
            session.run(piece)
        except FailedError as failure:
            raise StatementError(number, len(pieces), failure.line) from failure
        if session.ended:
            return
