"""What the figures were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import Any

__all__ = ["available_memory", "description", "versions"]


def description() -> dict[str, Any]:
    """CPU, cores, memory, system."""
    cpu = _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    total = _field("/proc/meminfo", "MemTotal")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_bytes": int(total.split()[0]) * 1024 if total else None,
        "system": platform.platform(),
    }


def available_memory() -> int:
    """Bytes that can be used without swapping; 1 GiB where the system does not say."""
    available = _field("/proc/meminfo", "MemAvailable")
    return int(available.split()[0]) * 1024 if available else 1 << 30


def versions(peers: list[str]) -> dict[str, str]:
    """Versions of what took part, by distribution; nothing is imported for it."""
    found = {"python": platform.python_version()}
    for name in ("engramsql", "duckdb", "numpy", "pyarrow", *peers):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _field(path: str, name: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(name)), None)
    except OSError:
        return None
