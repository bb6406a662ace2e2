"""Options that hold the whole suite to one reader or kernel, and fixtures.

A database in memory, golden checkpoints registered, sparse checkpoints of released size, a disk that is soon full,
settings put back.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from golden_data import GOLDEN

import engramsql

# What an example takes says how busy the machine is, and nothing of the program.
hypothesis.settings.register_profile("any_machine", deadline=None)
hypothesis.settings.load_profile("any_machine")

# Option, variable that child processes inherit, and what is skipped because it asks for the choice itself.
PATHS = {
    "reader": ("ENGRAMSQL_READER", "is about the choice among readers"),
    "kernel": ("ENGRAMSQL_KERNEL", "is about the choice among kernels"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, (variable, _) in PATHS.items():
        parser.addoption(
            f"--{option}", metavar="NAME", help=f"hold every process of the suite to one {option} ({variable})"
        )


def pytest_configure(config: pytest.Config) -> None:
    for option, (variable, _) in PATHS.items():
        config.addinivalue_line("markers", f"chooses_{option}: needs {variable} unset; skipped under --{option}")
        # Otherwise a run would not test what it says.
        os.environ.pop(variable, None)
        if config.getoption(option):
            # Before anything loads the engine, which looks at it once.
            os.environ[variable] = config.getoption(option)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for option, (_, why) in PATHS.items():
        if name := config.getoption(option):
            skip = pytest.mark.skip(reason=f"{why}, which --{option} {name} forces")
            for item in items:
                if item.get_closest_marker(f"chooses_{option}"):
                    item.add_marker(skip)


@pytest.fixture
def db() -> Iterator[Any]:
    """A database in memory."""
    database = engramsql.connect()
    yield database
    database.close()


@pytest.fixture
def golden_db(db: Any) -> Any:
    """A database in memory with the golden checkpoints as fp8, bf16, nvfp4 and v41 (v41_l1, v41_l3)."""
    for kind in ("fp8", "bf16", "nvfp4"):
        db.register(kind, GOLDEN / f"ckpt_qwen4_exp_{kind}")
    db.register("v41", GOLDEN / "ckpt_deepseek_v41")
    return db


@dataclass(frozen=True)
class FullSize:
    """Sparse checkpoints of released geometry and where their rows lie."""

    qwen: Path
    v41: Path
    qwen_rows: Any
    v41_values: list[Any]
    v41_scales: list[Any]


@pytest.fixture(scope="session")
def full_size(tmp_path_factory: pytest.TempPathFactory) -> FullSize:
    """Both releases' geometry in sparse files (254 GB apparent, a few MB on disk)."""
    from engramsql.demo import checkpoints
    from engramsql.demo.sparse import SparseError, require_sparse

    root = tmp_path_factory.mktemp("full_size")
    try:
        require_sparse(root)
        rows = checkpoints.build_qwen(root / "qwen")
        values, scales = checkpoints.build_v41(root / "v41")
    except SparseError as e:
        pytest.skip(f"no sparse files here: {e}")
    return FullSize(root / "qwen", root / "v41", rows, values, scales)


@pytest.fixture
def ple(db: Any, full_size: FullSize) -> Any:
    """A database in memory with the sparse PLE table of released geometry as ple."""
    db.register("ple", full_size.qwen)
    return db


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", "size=24m", "engramsql-test", str(mount)]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=True)


@pytest.fixture
def settings() -> Iterator[None]:
    """Puts the engine's settings, which belong to the process, back to what the environment says."""
    yield
    from engramsql.engine import set_ram_budget, set_reader, set_threads

    set_reader(os.environ.get("ENGRAMSQL_READER", ""))
    set_ram_budget(None)
    set_threads(None)
