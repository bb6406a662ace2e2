"""python -m benchmarks [hot] [peer] [hashing] [cold] [--dir D] [--out F]: measures, prints, and writes JSON."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks import cold, data, hashing, hot
from benchmarks.measure import save

MEASUREMENTS = ("hot", "peer", "hashing", "cold")


def main() -> None:
    """Runs the named measurements (default: all); exit code 3 if one of them is VOID."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("measurements", nargs="*", metavar="|".join(MEASUREMENTS), help="default: all")
    parser.add_argument("--dir", type=Path, default=Path("build/benchmarks"), help="where the test table is kept")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/results.json"))
    parser.add_argument("--shards", type=int, default=4, help="shards of 400 MB in the test table")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    chosen = args.measurements or list(MEASUREMENTS)
    if unknown := set(chosen) - set(MEASUREMENTS):
        parser.error(f"unknown measurement {', '.join(sorted(unknown))}; choose from {', '.join(MEASUREMENTS)}")
    print(f"load average before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    store = data.table(args.dir, args.shards) if chosen != ["hashing"] else args.dir
    # Cold last: it empties the page cache of the table the others want hot.
    for name in sorted(chosen, key=MEASUREMENTS.index):
        if name == "hot":
            save(args.out, hot.run(store, args.repeats))
        elif name == "peer":
            save(args.out, hot.run_peer(store, args.repeats))
        elif name == "hashing":
            save(args.out, hashing.run(args.repeats))
        else:
            save(args.out, cold.run(store, max(2, args.repeats // 3)))
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
