"""What is said beside results."""

from __future__ import annotations

from typing import Any

import pytest
from golden_data import GOLDEN

from engramsql.errors import EngramWarning
from engramsql.messages import say


def test_a_message_sends_no_codes_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("two lines\nand \x1b[31mred")
    assert capsys.readouterr().err == "two lines\nand \\x1b[31mred\n"


def test_a_warning_is_where_the_caller_is(db: Any) -> None:
    db.connection.execute("CREATE TABLE ple (i INTEGER)")
    with pytest.warns(EngramWarning, match="'ple' is hidden") as caught:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    assert [warning.filename for warning in caught] == [__file__]
