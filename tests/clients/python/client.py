"""The matrix in DuckDB's Python client: the extension file and DuckDB alone, without the package.

Arguments: the extension, and a file of sessions. One JSON object goes to stdout.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb


def render(value: Any, type: Any) -> Any:
    """A value as every client of the matrix writes it."""
    if value is None or isinstance(value, bool):
        return value
    if type.id in ("list", "array"):
        child = type.children[0][1]
        return [render(item, child) for item in value]
    if type.id == "struct":
        return {name: render(value[name], child) for name, child in type.children}
    if type.id in ("float", "double"):
        # By its bits; NaN has many.
        return "nan" if value != value else struct.pack(">f" if type.id == "float" else ">d", value).hex()
    if type.id == "blob":
        return value.hex()
    if type.id == "timestamp":
        return value.isoformat(timespec="microseconds")
    return str(value)


def interrupted(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Runs a query that only an interrupt ends; one that comes before the query has begun is lost."""
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.05):
            connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        connection.execute(sql).fetchall()
    finally:
        ended.set()
        thread.join()


def answer(connection: duckdb.DuckDBPyConnection, query: dict[str, Any]) -> dict[str, Any]:
    """Columns, types and rows of a query, or its error and whether the connection goes on."""
    try:
        if query.get("interrupt"):
            interrupted(connection, query["sql"])
        connection.execute(query["sql"], query.get("parameters"))
        names, types = zip(*[column[:2] for column in connection.description or []], strict=True)
        rows = [[render(*cell) for cell in zip(row, types, strict=True)] for row in connection.fetchall()]
    except duckdb.Error as error:
        return {"error": str(error), "then": connection.execute("SELECT 42").fetchall() == [(42,)]}
    return {"columns": names, "types": [str(type) for type in types], "rows": rows}


def run(extension: str, session: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of each connection of a session; the connections work at the same time."""
    connections = []
    for _ in range(session["databases"]):
        database = duckdb.connect(session["database"], config={"allow_unsigned_extensions": "true"})
        database.execute(f"LOAD '{extension}'")
        database.execute("CALL engram_attach(?)", [session["directory"]])
        connections += [database.cursor() for _ in range(session["connections"])]
    with ThreadPoolExecutor(len(connections)) as pool:
        work = [
            pool.submit(lambda c=c: {query["name"]: answer(c, query) for query in session["queries"]})
            for c in connections
        ]
        return [done.result() for done in work]


def main(extension: str, sessions: str) -> None:
    with open(sessions, encoding="utf-8") as file:
        answers = {session["name"]: run(extension, session) for session in json.load(file)}
    json.dump({"version": duckdb.__version__, "sessions": answers}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
