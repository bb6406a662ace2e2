"""The same extension file gives the same answers in every DuckDB client, to the last bit."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from checkpoints import make_store
from client_programs import PROGRAMS, check_version, client_command
from golden_data import GOLDEN, case

import engramsql
from engramsql.udf import extension_path

# What DuckDB's Python client answers is what the others must answer.
OTHERS = ["python-oldest", "cli", "node", "java", "go", "adbc"]
SESSIONS = ["memory", "concurrent", "file", "catalog"]


class Matrix:
    """One database directory, and what each client answers about it."""

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
        self.answers = cache(self._answers)

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

    def _answers(self, client: str) -> dict[str, list[dict[str, Any]]]:
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
    for part in ("columns", "types"):
        if found[part] != expected[part]:
            return f"{part}: expected {expected[part]}, found {found[part]}"
    if len(found["rows"]) != len(expected["rows"]):
        return f"expected {len(expected['rows'])} rows, found {len(found['rows'])}"
    for number, (row, other) in enumerate(zip(expected["rows"], found["rows"], strict=True)):
        for name, value, wrong in zip(expected["columns"], row, other, strict=True):
            if wrong != value:
                return f"row {number}, {name}: expected {value!r:.300}, found {wrong!r:.300}"
    return None


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("client", OTHERS)
@pytest.mark.timeout(900)
def test_every_client_answers_as_python_does(matrix: Matrix, client: str, session: str) -> None:
    """Values to the last bit, names and types of columns, messages of errors, in each connection of a session."""
    expected = matrix.answers("python")[session][0]
    found = matrix.answers(client)[session]
    (about,) = [s for s in matrix.sessions(client) if s["name"] == session]
    assert len(found) == about["databases"] * about["connections"]
    # The command line prints nothing for what changes something, and takes no interrupt from a pipe.
    beyond = ("changes", "interrupt") if client == "cli" else ()
    asked = [query["name"] for query in about["queries"] if not any(key in query for key in beyond)]
    different = [
        f"{name}: {line}"
        for answers in found
        for name in asked
        if (line := difference(expected[name], answers.get(name)))
    ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("session", SESSIONS)
def test_python_answers_what_the_queries_are_for(matrix: Matrix, session: str) -> None:
    """Every query is refused or answered as it is meant to be, by every connection alike."""
    (about,) = [s for s in matrix.sessions("python") if s["name"] == session]
    first, *others = matrix.answers("python")[session]
    assert others == [first] * len(others)
    for query in about["queries"]:
        found = first[query["name"]]
        if "refused" in query:
            assert query["refused"] in found.get("error", "no error"), found
            assert found["then"], query["name"]
        else:
            assert "error" not in found, found


def test_python_answers_golden_values(matrix: Matrix) -> None:
    """The answers that the others are held to are those of the released hash and of a checkpoint."""
    (answers,) = matrix.answers("python")["memory"]
    ids = case("qwen_ple_v1", "readme_example")["rowids"].tolist()
    assert answers["row ids without a table"]["rows"] == [[[[str(i) for i in token] for token in ids]]]
    expected = case("ckpt_qwen4_exp_fp8_expected", "main")
    rows = answers["fetch golden tokens"]["rows"]
    assert [int(row[0]) for row in rows] == expected["rowids"].ravel().tolist()
    assert "".join(row[1] for row in rows) == expected["rows"].tobytes().hex()
