"""Keys of the prompt: Enter runs a statement that is finished, Tab completes, and nothing else accepts a completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_completions, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

__all__ = ["ESCAPE_SECONDS", "bindings"]

# For ``Application.timeoutlen`` and ``.ttimeoutlen``: how long Escape waits for the rest of an Alt key.
ESCAPE_SECONDS = 0.1


def bindings(is_finished: Callable[[str], bool], edit: Callable[[str], str | None]) -> KeyBindings:
    """The keys of the prompt.

    Args:
        is_finished: Whether a text can be run as it is; else Enter begins a new line.
        edit: What the user's editor makes of a text; None if it stays as it is.
    """
    keys = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER) & ~is_searching
    menu_open = Condition(lambda: get_app().current_buffer.complete_state is not None)

    @keys.add("enter", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # What was chosen in the menu is in the text already; what was not chosen is not wanted.
        buffer.complete_state = None
        if not buffer.text.strip() or is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @keys.add("escape", "enter", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None
        event.current_buffer.newline()

    @keys.add("c-x", "c-e", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.complete_state = None

        def take() -> None:
            text = edit(buffer.text)
            if text is not None:
                buffer.document = Document(text)

        # The editor has the terminal meanwhile.
        event.app.create_background_task(_awaited(run_in_terminal(take)))

    @keys.add("tab", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    @keys.add("s-tab", filter=at_prompt & menu_open)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_previous()

    # Not eager: Alt-Enter begins with Escape.
    @keys.add("escape", filter=at_prompt & has_completions)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add(Keys.BracketedPaste, filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        # In one piece, and without the menu: nobody is typing.
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.complete_state = None
        event.current_buffer.insert_text(text, fire_event=False)

    return keys


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _complete(buffer: Buffer) -> None:
    """Chooses the next entry of the menu; opens it first, if it must, unless one entry is all there is."""
    state = buffer.complete_state
    if state is not None and state.complete_index is not None and len(state.completions) > 1:
        buffer.complete_next()
        return
    # Not from the menu that typing opened: a fast typist's Tab comes before its entries do.
    event = CompleteEvent(completion_requested=True)
    found = list(islice(buffer.completer.get_completions(buffer.document, event), buffer.max_number_of_completions))
    buffer.complete_state = None
    if len(found) == 1:
        buffer.apply_completion(found[0])
    elif found:
        buffer.complete_state = CompletionState(buffer.document, found)
        buffer.go_to_completion(0)
