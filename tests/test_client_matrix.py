"""The same extension file gives the same answers in every DuckDB client, to the last bit."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import client_programs
import pytest
from checkpoints import make_store
from client_programs import PROGRAMS, check_version, client_command, fetched, tool
from golden_data import GOLDEN, case

import engramsql
from engramsql.udf import extension_path


class Matrix:
    """One database directory, and what clients answer about it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        make_store(root / "store", manifest=True)
        with engramsql.connect(root / "db") as db:
            for name, checkpoint in [
                ("ple", "qwen4_exp_fp8"),
                ("bf16", "qwen4_exp_bf16"),
                ("nvfp4", "qwen4_exp_nvfp4"),
            ]:
                db.register(name, GOLDEN / f"ckpt_{checkpoint}")
            db.register("engram", GOLDEN / "ckpt_deepseek_v41")
            db.register("raw", root / "store")
            db.build("built", "ple")
            # A TIMESTAMP for engram_tables().
            assert db.verify("built").good
            db.build_view("corpus", "ple", [[17, 4, 256, 17, 4]])
            db.create_view("few", "SELECT rowid, head, embedding[1] AS first FROM ple WHERE rowid < 5")
        # What the others must answer, too.
        self.expected = self.ask("python")

    def sessions(self, client: str) -> list[dict[str, Any]]:
        """The sessions of a client, with a directory of its own for what they write."""
        scratch = self.scratch(client)
        text = (PROGRAMS / "queries.json").read_text(encoding="utf-8")
        places = {"scratch": scratch, "store": self.root / "store", "checkpoint": GOLDEN / "ckpt_qwen4_exp_bf16"}
        for name, path in places.items():
            text = text.replace(f"{{{name}}}", str(path))
        usual = {"database": ":memory:", "directory": str(self.root / "db"), "databases": 1, "connections": 1}
        sessions = [{**usual, **session} for session in json.loads(text)]
        # Two databases in one process, each with two connections at work.
        together = [query for query in sessions[0]["queries"] if not query.get("alone")]
        return [*sessions, {**usual, "name": "concurrent", "databases": 2, "connections": 2, "queries": together}]

    def scratch(self, client: str) -> Path:
        """Where a client writes."""
        return self.root / client

    def ask(self, client: str) -> dict[str, list[dict[str, Any]]]:
        """What a client answers: by session, a list with the answers of each connection, which are by query."""
        command = client_command(client)
        self.scratch(client).mkdir()
        sessions = self.scratch(client) / "sessions.json"
        sessions.write_text(json.dumps(self.sessions(client)), encoding="utf-8")
        done = subprocess.run(
            [*command, str(extension_path()), str(sessions)], capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr[-5000:]
        # Paths of its own must not differ from those of the others.
        found = json.loads(done.stdout.replace(str(self.scratch(client)), "{scratch}"))
        check_version(client, found["version"])
        answers: dict[str, list[dict[str, Any]]] = found["sessions"]
        return answers


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(tmp_path_factory.mktemp("clients"))


def core(message: str) -> str:
    """What the extension says, without the kind of error before it and the place in the query after it."""
    return message.split("\n")[0].split("Error: ")[-1]


def difference(expected: dict[str, Any], found: dict[str, Any] | None) -> str | None:
    """How an answer differs from the expected one, in a line."""
    if found is None:
        return "no answer"
    if "error" in expected or "error" in found:
        said = found.get("error", "no error")
        if core(expected.get("error", "no error")) not in said:
            return f"expected {expected.get('error', 'no error')!r:.300}, found {said!r:.300}"
        return None if found["then"] else f"nothing works after {said!r:.300}"
    # Some clients put the names of fields of a STRUCT in quotes.
    types = [type.replace('"', "") for type in found["types"]]
    for part, other in ("columns", found["columns"]), ("types", types):
        if other != expected[part]:
            return f"{part}: expected {expected[part]}, found {other}"
    if len(found["rows"]) != len(expected["rows"]):
        return f"expected {len(expected['rows'])} rows, found {len(found['rows'])}"
    for number, (row, other) in enumerate(zip(expected["rows"], found["rows"], strict=True)):
        for name, value, wrong in zip(expected["columns"], row, other, strict=True):
            if wrong != value:
                return f"row {number}, {name}: expected {value!r:.300}, found {wrong!r:.300}"
    return None


def differences(about: dict[str, Any], expected: dict[str, Any], found: list[dict[str, Any]], client: str) -> list[str]:
    """The answers of a client in a session that are not the expected ones, a line each."""
    if len(found) != about["databases"] * about["connections"]:
        return [f"{about['name']}: answers of {len(found)} connections"]
    # The command line prints nothing for what changes something, and takes no interrupt from a pipe.
    beyond = ("changes", "interrupt") if client == "cli" else ()
    asked = [query["name"] for query in about["queries"] if not any(key in query for key in beyond)]
    return [
        f"{about['name']}, {name}: {line}"
        for answers in found
        for name in asked
        if (line := difference(expected[name], answers.get(name)))
    ]


@pytest.mark.parametrize("client", ["python-oldest", "cli", "node", "java", "go", "adbc"])
@pytest.mark.timeout(900)
def test_every_client_answers_as_python_does(matrix: Matrix, client: str) -> None:
    """Values to the last bit, names and types of columns, messages of errors, in every connection of every session."""
    found = matrix.ask(client)
    assert [
        line
        for about in matrix.sessions(client)
        for line in differences(about, matrix.expected[about["name"]][0], found[about["name"]], client)
    ] == []


def unmeant(query: dict[str, Any], found: dict[str, Any]) -> str | None:
    """How an answer is not what the query is for, in a line."""
    said = found.get("error", "no error")
    if "refused" in query:
        return None if query["refused"] in said and found.get("then") else f"expected {query['refused']}, found {said}"
    return said if "error" in found else None


def test_python_answers_what_the_queries_are_for(matrix: Matrix) -> None:
    """Every query is refused or answered as it is meant to be, by every connection alike."""
    wrong = []
    for about in matrix.sessions("python"):
        first, *others = matrix.expected[about["name"]]
        assert others == [first] * (about["databases"] * about["connections"] - 1)
        for query in about["queries"]:
            if line := unmeant(query, first[query["name"]]):
                wrong.append(f"{about['name']}, {query['name']}: {line}")
    assert wrong == []


def test_python_answers_golden_values(matrix: Matrix) -> None:
    """The answers that the others are held to are those of the released hash and of a checkpoint."""
    (answers,) = matrix.expected["memory"]
    ids = case("qwen_ple_v1", "readme_example")["rowids"].tolist()
    assert answers["row ids without a table"]["rows"] == [[[[str(i) for i in token] for token in ids]]]
    expected = case("ckpt_qwen4_exp_fp8_expected", "main")
    rows = answers["fetch golden tokens"]["rows"]
    assert [int(row[0]) for row in rows] == expected["rowids"].ravel().tolist()
    assert "".join(row[1] for row in rows) == expected["rows"].tobytes().hex()


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client that cannot be tested is skipped with a reason, or fails where it is required."""
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: tool("go", "no-such-program"), "DuckDB's client go is not tested: no-such-program is not installed"),
        (lambda: check_version("node", "v1.5.5"), "it is DuckDB v1.5.5, and the extension needs 1.5.6"),
        (lambda: fetched("node", ["sh", "-c", "echo no network >&2; exit 1"], tmp_path), "failed: no network"),
    ]
    for value, outcome in [("", pytest.skip.Exception), ("required", pytest.fail.Exception)]:
        monkeypatch.setenv("ENGRAMSQL_CLIENTS", value)
        for call, reason in refusals:
            with pytest.raises(outcome, match=re.escape(reason)):
                call()
    for version in ("1.5.6", "v1.5.6-r.1", "v2.0.0"):
        check_version("node", version)


def test_an_install_is_done_once_per_pin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that was interrupted is done again, and so is one whose pins have changed."""
    monkeypatch.setattr(client_programs, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(client_programs, "PROGRAMS", tmp_path)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "pin").write_text("1")
    calls: list[str] = []

    def fetch(directory: Path) -> None:
        assert sorted(path.name for path in directory.iterdir()) == ["pin"]
        calls.append((directory / "pin").read_text())
        if len(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client_programs.installed("some", ["pin"], fetch)
    for pin in ("1", "1", "2", "2"):
        (tmp_path / "some" / "pin").write_text(pin)
        client_programs.installed("some", ["pin"], fetch)
    assert calls == ["1", "1", "2"]
