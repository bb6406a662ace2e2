"""The matrix in the DuckDB command line, which answers in JSON; one process per connection.

Arguments: the command line's program, the extension, and a file of sessions. One JSON object goes to stdout.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# A line between what statements print, which prints nothing like it: results are JSON.
MARK = "--end--"


def render(value: Any, type: str) -> Any:
    """A value of the JSON as every client of the matrix writes it."""
    if value is None or isinstance(value, bool):
        return value
    if inside := re.fullmatch(r"(.*)\[\d*\]", type):
        return [render(item, inside[1]) for item in value]
    if type.startswith("STRUCT("):
        # No type inside holds a comma.
        fields = [field.rsplit(" ", 1) for field in type.removeprefix("STRUCT(").removesuffix(")").split(", ")]
        return {name: render(value[name], inside) for name, inside in fields}
    if type in ("FLOAT", "DOUBLE"):
        # By its bits; NaN has many. The text is the shortest that gives the same value.
        return "nan" if value != value else struct.pack(">f" if type == "FLOAT" else ">d", value).hex()
    if type == "BLOB":
        return re.sub(r"\\x(..)|([^\\])", lambda m: (m[1] or f"{ord(m[2]):02x}").lower(), value)
    if type == "TIMESTAMP":
        day, time = value.split(" ")
        seconds, _, rest = time.partition(".")
        return f"{day}T{seconds}.{rest:0<6}"
    return str(value)


def literal(value: Any) -> str:
    """A parameter, written into SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def statements(query: dict[str, Any]) -> list[str]:
    """What asks for the types of a query, what runs it, and what shows that the connection goes on."""
    sql = query["sql"]
    parameters = [literal(value) for value in query.get("parameters", [])]
    describe = sql
    for parameter in parameters:
        describe = describe.replace("?", parameter, 1)
    if parameters:
        sql = f"PREPARE q AS {sql}; EXECUTE q({', '.join(parameters)})"
    refused = "refused" in query or "changes" in query
    return ["SELECT NULL" if refused else f"DESCRIBE {describe}", sql, "SELECT 42 AS then"]


def run(program: str, extension: str, session: dict[str, Any]) -> dict[str, Any]:
    """The answers of one connection of a session, which is a process."""
    queries = [query for query in session["queries"] if not query.get("interrupt")]
    script = [f"LOAD '{extension}'", f"CALL engram_attach('{session['directory']}')"]
    for query in queries:
        script += statements(query)
    done = subprocess.run(
        [program, "-unsigned", "-json", "-no-init", session["database"]],
        input="".join(f"{statement};\n.print {MARK}\n" for statement in script),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    parts = [part.strip() for part in done.stdout.split(f"{MARK}\n")]
    if len(parts) != len(script) + 1:
        raise SystemExit(f"{len(parts)} answers to {len(script)} statements: {done.stdout[-2000:]}")
    found = iter(parts[2:])
    return {query["name"]: answer(query, next(found), next(found), next(found)) for query in queries}


def answer(query: dict[str, Any], described: str, text: str, then: str) -> dict[str, Any] | None:
    """Columns, types and rows of a query, or its error; None for what prints nothing."""
    if "refused" in query:
        return {"error": text, "then": json.loads(then) == [{"then": 42}]}
    if "changes" in query and not text:
        return None
    try:
        about = json.loads(described)
        columns, types = [c["column_name"] for c in about], [c["column_type"] for c in about]
        rows = [
            [render(row[name], type) for name, type in zip(columns, types, strict=True)] for row in json.loads(text)
        ]
    except ValueError:
        return {"error": described + text, "then": json.loads(then) == [{"then": 42}]}
    return {"columns": columns, "types": types, "rows": rows}


def main(program: str, extension: str, file_name: str) -> None:
    with open(file_name, encoding="utf-8") as file:
        sessions = json.load(file)
    answers = {}
    for session in sessions:
        number = session["databases"] * session["connections"]
        with ThreadPoolExecutor(number) as pool:
            answers[session["name"]] = list(pool.map(lambda _, s=session: run(program, extension, s), range(number)))
    version = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stdout.split()[0]
    json.dump({"version": version, "sessions": answers}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
