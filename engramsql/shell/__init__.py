"""The shell: SQL and dot commands, typed at a terminal.

``statements`` cuts what was typed into pieces, ``session`` runs them, ``commands`` has the dot commands, ``results`` is
where results go, ``prompt`` reads lines. Only ``prompt`` touches prompt-toolkit.
"""

from __future__ import annotations

import threading
from functools import partial

__all__ = ["run"]


def run(
    path: str | None,
    *,
    read_only: bool = False,
    ram_budget: str | None = None,
    threads: int | None = None,
    mode: str | None = None,
    read_config: bool = True,
) -> None:
    """Opens the shell on the terminal and returns when the user leaves it.

    Args:
        path: Database, checkpoint or store directory; None for an empty database in memory.
        read_only: Nothing is written.
        ram_budget: Memory for rows that were read from the disk.
        threads: Threads of a query.
        mode: Output mode; what the configuration says, or box, if left out.
        read_config: Whether the configuration file is read.

    Raises:
        EngramError: If the database cannot be opened.
    """
    from engramsql import __version__
    from engramsql.commands import require, warn_of_lost
    from engramsql.database import connect
    from engramsql.export.visible import cut
    from engramsql.shell import config, prompt
    from engramsql.shell.history import HistoryFile
    from engramsql.shell.session import Session
    from engramsql.shell.terminal import terminal_size

    if path is not None:
        require(path)
    opened = partial(connect, read_only=read_only, ram_budget=ram_budget, threads=threads)
    session = Session(opened(path))
    session.connect = opened
    try:
        if read_config:
            for problem in config.load(config.config_path(), session.settings):
                session.say(f"engramsql: warning: {problem}")
        if mode is not None:
            session.settings.set("mode", mode)
            session.results.mode_chosen = True
        keep = session.settings.history
        history = HistoryFile(config.history_path(), keep) if keep else None
        # One line: a path can be long.
        session.print(
            cut(f"EngramSQL {__version__} - {session.greeting()}", terminal_size().columns, "...", count=False)
        )
        session.print("End a statement with ; - .help lists the commands, Ctrl-D ends the session")
        # The first result would wait for it; now the user reads.
        threading.Thread(target=_prepare, name="engramsql-prepare", daemon=True).start()
        with session.interrupts.counted(), session.interrupts.terminated():
            prompt.interact(session, history)
            if session.made and session.database.directory is not None:
                warn_of_lost(session.database)
    finally:
        session.close()


def _prepare() -> None:
    """Imports what statements are planned and results are written with."""
    import pyarrow  # noqa: F401, ICN001 (for its side effect)

    from engramsql.export import box  # noqa: F401
    from engramsql.planner import statements  # noqa: F401
