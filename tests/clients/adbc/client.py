"""The matrix through ADBC: the driver manager and the DuckDB library that the Python wheel brings.

Arguments: the extension, and a file of sessions. One JSON object goes to stdout.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from adbc_driver_manager import dbapi


def render(value: Any, type: pa.DataType) -> Any:
    """A value as every client of the matrix writes it."""
    if value is None or isinstance(value, bool):
        return value
    if pa.types.is_list(type) or pa.types.is_fixed_size_list(type):
        return [render(item, type.value_type) for item in value]
    if pa.types.is_struct(type):
        return {field.name: render(value[field.name], field.type) for field in type}
    if pa.types.is_floating(type):
        # By its bits; NaN has many.
        return "nan" if value != value else struct.pack(">f" if type.bit_width == 32 else ">d", value).hex()
    if pa.types.is_binary(type):
        return value.hex()
    if pa.types.is_timestamp(type):
        return value.isoformat(timespec="microseconds")
    return str(value)


NAMES = {
    "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT", "uint64": "UBIGINT", "decimal128(38, 0)": "HUGEINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp[us]": "TIMESTAMP",
}  # fmt: skip


def type_name(type: pa.DataType) -> str:
    """What DuckDB calls the type that comes out as this one."""
    if pa.types.is_list(type):
        return type_name(type.value_type) + "[]"
    if pa.types.is_fixed_size_list(type):
        return f"{type_name(type.value_type)}[{type.list_size}]"
    if pa.types.is_struct(type):
        return "STRUCT(" + ", ".join(f"{field.name} {type_name(field.type)}" for field in type) + ")"
    return NAMES.get(str(type), str(type))


def interrupted(cursor: dbapi.Cursor, sql: str) -> None:
    """Runs a query that only an interrupt ends; one that comes before the query has begun is lost."""
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.05):
            cursor.adbc_cancel()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        cursor.execute(sql)
        cursor.fetchall()
    finally:
        ended.set()
        thread.join()


def answer(connection: dbapi.Connection, query: dict[str, Any]) -> dict[str, Any]:
    """Columns, types and rows of a query, or its error and whether the connection goes on."""
    try:
        with connection.cursor() as cursor:
            if query.get("interrupt"):
                interrupted(cursor, query["sql"])
            cursor.execute(query["sql"], query.get("parameters"))
            table = cursor.fetch_arrow_table()
    except dbapi.Error as error:
        with connection.cursor() as cursor:
            return {"error": str(error), "then": cursor.execute("SELECT 42").fetchall() == [(42,)]}
    columns = [[render(value, field.type) for value in table[i].to_pylist()] for i, field in enumerate(table.schema)]
    return {
        "columns": table.schema.names,
        "types": [type_name(type) for type in table.schema.types],
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def connect(database: str) -> dbapi.Connection:
    """A connection to a new database of the wheel's library."""
    library = importlib.util.find_spec("_duckdb")
    assert library is not None
    options = {"path": database, "allow_unsigned_extensions": "true"}
    return dbapi.connect(library.origin, entrypoint="duckdb_adbc_init", db_kwargs=options, autocommit=True)


def clone(first: dbapi.Connection) -> dbapi.Connection:
    """Another connection to the same database."""
    other = first.adbc_clone()
    # A clone does not inherit it, and in a transaction the first error ends all that follows.
    other.adbc_connection.set_autocommit(True)
    return other


def run(extension: str, session: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of each connection of a session; the connections work at the same time."""
    connections = []
    for _ in range(session["databases"]):
        first = connect(session["database"])
        with first.cursor() as cursor:
            cursor.execute(f"LOAD '{extension}'")
            cursor.execute("CALL engram_attach(?)", [session["directory"]])
            cursor.fetchall()
        connections += [first, *[clone(first) for _ in range(1, session["connections"])]]
    with ThreadPoolExecutor(len(connections)) as pool:
        work = [
            pool.submit(lambda c=c: {query["name"]: answer(c, query) for query in session["queries"]})
            for c in connections
        ]
        answers = [done.result() for done in work]
    for connection in reversed(connections):
        connection.close()
    return answers


def main(extension: str, sessions: str) -> None:
    with open(sessions, encoding="utf-8") as file:
        answers = {session["name"]: run(extension, session) for session in json.load(file)}
    with connect(":memory:") as connection:
        json.dump({"version": connection.adbc_get_info()["vendor_version"], "sessions": answers}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
