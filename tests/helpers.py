"""What many tests need: SQL in and rows out, a checked refusal, and the product in a process of its own."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from numpy.typing import NDArray

TESTS = Path(__file__).parent

BUG_TYPES = {"PanicException", "SystemError", "AttributeError", "NameError", "UnboundLocalError", "AssertionError"}
BUG_WORDS = ("INTERNAL", "panicked", "Traceback", "unwrap()", "called `Option", "called `Result")


def q(db: Any, sql: str, *params: object) -> list[tuple[Any, ...]]:
    """Rows of a statement on the DuckDB connection of a database; parameters are bound in order."""
    connection = getattr(db, "connection", db)
    rows: list[tuple[Any, ...]] = connection.execute(sql, list(params)).fetchall()
    return rows


def one(db: Any, sql: str, *params: object) -> Any:
    """The single value a statement returns."""
    ((value,),) = q(db, sql, *params)
    return value


def refuses(call: Callable[[], object], *fragments: object) -> str:
    """Runs ``call``, which must raise an ordinary error that contains every fragment; returns the message.

    A fragment that is a tuple needs one of its members. Case does not matter. The error must not look like a bug.
    """
    try:
        result = call()
    except Exception as e:
        message, kind = str(e), type(e).__name__
    else:
        pytest.fail(f"not refused: returned {result!r:.300}")
    assert kind not in BUG_TYPES, f"{kind}: {message}"
    for word in BUG_WORDS:
        assert word not in message, message
    assert_mentions(message, *fragments)
    return message


def outcome(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """(result, None), or (None, message) if it was refused: for cases where both are right, but nothing else is."""
    try:
        return call(), None
    except Exception as e:
        kind, message = type(e).__name__, str(e)
    assert kind not in BUG_TYPES, f"{kind}: {message}"
    return None, message


def assert_mentions(message: str, *fragments: object) -> None:
    """Every fragment (or one member of a tuple) occurs in ``message``, ignoring case."""
    low = message.lower()
    for fragment in fragments:
        options = fragment if isinstance(fragment, tuple) else (fragment,)
        assert any(str(o).lower() in low for o in options), f"{options} not in: {message}"


def sql_refuses(db: Any, sql: str, *fragments: object, params: Iterable[object] = ()) -> str:
    """A statement that must be refused, after which the connection still works."""
    message = refuses(lambda: q(db, sql, *params), *fragments)
    assert one(db, "SELECT 42") == 42
    return message


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process at a time below here makes what all of them use, as an install in the clone."""
    locks = TESTS.parent / "build" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def named(value: object) -> str:
    """The id of a parameter: its repr without an address, which is another one in each process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def run_python(
    code: str,
    *,
    env: dict[str, str] | None = None,
    expect: int | None = 0,
    timeout: float = 180,
    args: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs ``code`` in a fresh Python with the tests directory on its path; a wrong exit code shows both outputs."""
    environment = dict(os.environ)
    # Unbuffered, print() loses what one write to a pipe does not take.
    environment.pop("PYTHONUNBUFFERED", None)
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), environment.get("PYTHONPATH", "")])
    environment.update(env or {})
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if expect is not None:
        assert done.returncode == expect, (
            f"exit {done.returncode}\n--- stdout\n{done.stdout[-3000:]}\n--- stderr\n{done.stderr[-5000:]}"
        )
    return done


def f32_bits(values: object) -> NDArray[np.uint32]:
    """Bit patterns of float32 values."""
    return np.ascontiguousarray(np.asarray(values, dtype="<f4")).view(np.uint32)


def bf16_bits(values: object) -> NDArray[np.uint16]:
    """Bit patterns after one rounding of float32 to bfloat16, nearest, ties to even; NaN stays NaN."""
    bits = f32_bits(values)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, (bits >> 16).astype(np.uint16) | 0x40, rounded).astype(np.uint16)


def bf16_values(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """float32 values of bfloat16 bit patterns."""
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(np.float32)


def assert_same_bits(found: object, expected_bits: NDArray[np.uint32]) -> None:
    """float32 values equal the expected bit patterns; NaN compares by being NaN."""
    found_bits = f32_bits(found)
    assert found_bits.shape == expected_bits.shape
    nan = np.isnan(expected_bits.view(np.float32))
    assert np.array_equal(np.isnan(found_bits.view(np.float32)), nan)
    assert np.array_equal(found_bits[~nan], expected_bits[~nan])


def assert_same_bf16(found: NDArray[np.uint16], expected: NDArray[np.uint16]) -> None:
    """bfloat16 bit patterns are equal; NaN compares by being NaN."""
    assert found.shape == expected.shape
    assert found.dtype == np.uint16
    nan = (expected & 0x7FFF) > 0x7F80
    assert np.array_equal((found & 0x7FFF) > 0x7F80, nan)
    assert np.array_equal(found[~nan], expected[~nan])
