"""Fixtures: a database in memory, golden checkpoints registered, and sparse checkpoints of released size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from golden_data import GOLDEN

import engramsql


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
