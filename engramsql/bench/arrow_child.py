"""The process whose memory is watched while it makes one Arrow table."""

from __future__ import annotations

import json
import sys

from engramsql.bench.sql import fill_ids
from engramsql.bench.target import Target
from engramsql.database import connect

__all__ = ["main"]


def main() -> None:
    """Says ``ready``, waits for a line, makes the table, prints its bytes, and holds it until stdin ends."""
    question = json.loads(sys.stdin.readline())
    target = Target(**question["target"])
    with connect(target.database, read_only=True) as database:
        connection = database.connection
        connection.execute(f"SET threads = {question['threads']}")
        fill_ids(connection, target, question["rows"])
        # What is loaded on first use is not the result's.
        connection.sql("SELECT 42 AS i").to_arrow_table()
        print("ready", flush=True)
        sys.stdin.readline()
        # As users do, and not on the connection: the statement may gain from the planner.
        table = database.sql(question["statement"]).to_arrow_table()
        print(table.nbytes, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
