"""A prompt with completion, hints, colours and keys and nothing else, for tests that drive it in a terminal.

Each statement is answered by a line with its text; ``quit`` ends it. Options: ``--no-color``.
"""

from __future__ import annotations

import sys

import engramsql
from engramsql.script import split
from engramsql.shell import highlight, keys
from engramsql.shell.completion import Completion


class Command:
    def __init__(self, name: str, argument: str) -> None:
        self.name = name
        self.aliases = ()
        self.argument = argument
        self.summary = "a command"


def is_finished(text: str) -> bool:
    # Something behind it is a statement of its own.
    return text.startswith(".") or (text.rstrip().endswith(";") and len(split(text + "\n x")) > len(split(text)))


def main(directory: str, *options: str) -> None:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app

    with engramsql.connect(directory) as database:
        completion = Completion(database, commands=[Command(".read", "file"), Command(".tables", "")])
        assert completion.catalog.wait(60)

        def toolbar() -> str:
            buffer = get_app().current_buffer
            return completion.hint(buffer.text, buffer.cursor_position)

        session: PromptSession[str] = PromptSession(
            multiline=True,
            completer=completion.completer,
            complete_while_typing=True,
            lexer=highlight.LEXER,
            style=highlight.style("--no-color" not in options),
            include_default_pygments_style=False,
            key_bindings=keys.bindings(is_finished),
            bottom_toolbar=toolbar,
        )
        session.app.timeoutlen = session.app.ttimeoutlen = keys.ESCAPE_SECONDS
        while True:
            text = session.prompt("> ", prompt_continuation="- ")
            print(f"RAN {text!r}", flush=True)
            if text == "quit;":
                break
            completion.refresh(text)
        completion.close()


main(*sys.argv[1:])
