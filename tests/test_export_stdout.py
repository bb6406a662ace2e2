"""``engramsql export TABLE -``: the records of a file, through a pipe."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from golden_data import GOLDEN
from helpers import assert_same_bits, f32_bits
from program import PROGRAM, on_terminal, run

import engramsql

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
TOKENS = [[17, 4, 256, 17, 4], [5, 6]]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("".join(" ".join(map(str, sequence)) + "\n" for sequence in TOKENS))
    return path


@pytest.fixture
def long_corpus(tmp_path: Path) -> Path:
    """Tokens whose e_t no pipe holds: a gigabyte."""
    path = tmp_path / "long.npy"
    np.save(path, np.random.default_rng(3).integers(0, 512, 100_000))
    return path


def exported(*words: object) -> subprocess.CompletedProcess[bytes]:
    command = [*PROGRAM, "export", "ple", "-", "--db", CHECKPOINT, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, check=False, timeout=120)


def test_a_pipe_gets_an_arrow_stream(corpus: Path) -> None:
    done = exported("--tokens", corpus)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(b"standard output: 7 records, ")
    with pa.ipc.open_stream(done.stdout) as stream:
        found = stream.read_all()
    with engramsql.connect(CHECKPOINT) as db:
        expected = db.arrow_reader("ple", tokens=TOKENS).read_all()
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)
        values = found.column("e_t").combine_chunks().flatten().to_numpy().reshape(7, -1)
        assert_same_bits(values[:5], f32_bits(db.table("ple").e_t(np.array(TOKENS[0]))))
    # With its end marker: what was cut off does not have it.
    assert done.stdout.endswith(b"\xff\xff\xff\xff\0\0\0\0")


def test_text_goes_through_a_pipe_too(corpus: Path) -> None:
    lines = exported("--tokens", corpus, "--format", "jsonl", "--columns", "token_id,sequence").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"token_id": token, "sequence": number} for number, sequence in enumerate(TOKENS) for token in sequence
    ]
    rows = exported("--format", "csv", "--columns", "rowid,head").stdout.splitlines()
    assert (rows[:2], len(rows)) == ([b"rowid,head", b"0,0"], 1409)
    query = run("export", "--sql", "SELECT 42 AS a", "-o", "-", "--db", CHECKPOINT, "--format", "csv")
    assert query.stdout == "a\n42\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "npy"], "npy needs a file; to standard output go arrows, csv, jsonl"),
        (["--rows-per-file", "5"], "--rows-per-file belongs to files, and '-' is standard output"),
        (["--replace"], "--replace belongs to files, and '-' is standard output"),
        (["--resume"], "--resume belongs to files, and '-' is standard output"),
    ],
)
def test_what_belongs_to_files_is_refused(words: list[str], message: str) -> None:
    done = exported(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()


def test_arrow_is_the_stream_where_there_is_no_file(corpus: Path) -> None:
    assert exported("--tokens", corpus, "--format", "arrow").stdout == exported("--tokens", corpus).stdout


def test_tokens_come_from_files() -> None:
    done = exported("--tokens", "-")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"'-' is no file: tokens and ids are read from files; name one" in done.stderr


def test_a_pipe_with_a_name_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "e.arrows"
    os.mkfifo(pipe)
    done = run("export", "ple", pipe, "--db", CHECKPOINT)
    assert done.returncode == 1
    assert "is a device or a pipe; name a file, or '-' for standard output" in done.stderr


def test_a_stream_that_fails_is_an_error_to_its_reader(tmp_path: Path) -> None:
    """That its end marker is missing is nothing to readers: they take the end of the bytes for that of the stream."""
    tokens = np.zeros(1_200_000, np.int64)
    tokens[-1] = 512
    np.save(tmp_path / "late.npy", tokens)
    done = exported("--tokens", tmp_path / "late.npy", "--columns", "token")
    assert done.returncode == 1
    assert b"token id 512 at position 1199999" in done.stderr
    with pa.ipc.open_stream(done.stdout) as stream:
        assert stream.read_next_batch().num_rows > 0
        with pytest.raises(pa.ArrowInvalid, match="Expected to read 8 metadata bytes, but only read 0"):
            stream.read_all()
    with pytest.raises(pl.exceptions.ComputeError):
        pl.read_ipc_stream(io.BytesIO(done.stdout))


def test_a_query_that_fails_midway_is_an_error_to_its_reader() -> None:
    query = "SELECT CASE WHEN range = 900000 THEN error('late') ELSE range END AS n FROM range(1000000)"
    command = [*PROGRAM, str(CHECKPOINT), "--format", "arrow", "-c", query]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert b"late" in done.stderr
    with pa.ipc.open_stream(done.stdout) as stream, pytest.raises(pa.ArrowInvalid, match="but only read 0"):
        stream.read_all()


def test_a_terminal_gets_no_arrow_stream() -> None:
    assert on_terminal("export", "ple", "-", "--db", CHECKPOINT) == (1, "")
    code, seen = on_terminal("export", "ple", "-", "--db", CHECKPOINT, "--format", "csv", "--columns", "rowid")
    assert (code, seen.splitlines()[:2]) == (0, ["rowid", "0"])


def test_the_shell_exports_to_files(tmp_path: Path) -> None:
    done = run(CHECKPOINT, "-c", ".export ple -")
    assert done.returncode == 1
    assert ".export writes files, and '-' is none" in done.stderr
    assert not Path("-").exists()


def started(*words: Any) -> subprocess.Popen[bytes]:
    command = [*PROGRAM, "export", "ple", "-", "--db", CHECKPOINT, *words]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_reader_that_has_seen_enough_ends_it(long_corpus: Path) -> None:
    with started("--tokens", long_corpus) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(1000)) == 1000
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == b""


def test_ctrl_c_while_nobody_reads(long_corpus: Path) -> None:
    with started("--tokens", long_corpus) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # It has begun, and waits for the pipe.
        assert os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"engramsql: interrupted; what was written is not whole\n"
        assert not process.stdout.read().endswith(b"\xff\xff\xff\xff\0\0\0\0")


def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "wb") as full:
        command = [*PROGRAM, "export", "ple", "-", "--db", str(CHECKPOINT)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
