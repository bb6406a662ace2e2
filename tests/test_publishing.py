"""Files and directories that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from engramsql.errors import ArgumentError, StorageError
from engramsql.publishing import GrowingFile, is_stream, new_directory, new_file


def test_a_file_appears_with_its_last_byte(tmp_path: Path) -> None:
    path = tmp_path / "made" / "whole.bin"
    with new_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert os.listdir(path.parent) == ["whole.bin"]


def test_what_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.bin"
    path.write_bytes(b"old")
    growing = GrowingFile(path, replace=True)
    growing.file.write(b"new")
    growing.discard()
    with pytest.raises(KeyboardInterrupt), new_file(path, replace=True):
        raise KeyboardInterrupt
    with pytest.raises(StorageError, match=f"cannot write '{path}': broken"), new_file(path, replace=True):
        raise OSError("broken")
    with pytest.raises(StorageError, match="Not a directory"), new_directory(tmp_path / "directory") as directory:
        os.listdir(_touched(directory / "one"))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept.bin"]


def test_what_is_replaced_keeps_its_permissions_and_its_links(tmp_path: Path) -> None:
    path, link = tmp_path / "private.bin", tmp_path / "link.bin"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    growing = GrowingFile(link, replace=True)
    # Nobody reads the new content meanwhile who may not read the old.
    assert stat.S_IMODE(os.fstat(growing.file.fileno()).st_mode) == 0o640
    growing.file.write(b"new")
    growing.publish()
    growing.discard()
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_came_to_be_there_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "taken.bin"
    with pytest.raises(ArgumentError, match="exists already"), new_file(path):
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["taken.bin"]


def test_two_that_write_one_file_do_not_write_into_each_other(tmp_path: Path) -> None:
    path = tmp_path / "shared.bin"
    with new_file(path, replace=True) as first:
        first.write(b"first")
        with new_file(path, replace=True) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


@pytest.mark.parametrize("name", ["a" * 255, "\u00fc" * 127, "[x]*"])
def test_any_name_that_a_file_may_have_will_do(tmp_path: Path, name: str) -> None:
    with new_file(tmp_path / name) as file:
        file.write(b"whole")
    assert os.listdir(tmp_path) == [name]


def test_no_file_takes_the_place_of_a_device_a_pipe_or_a_directory(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/stdout")):
        assert is_stream(path)
        with pytest.raises(ArgumentError, match="device or a pipe"), new_file(path, replace=True):
            pass
    with pytest.raises(ArgumentError, match="is a directory"), new_file(tmp_path, replace=True):
        pass
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    own, living = str(os.getpid()), str(os.getppid())
    for owner in (ended, living, own):
        (tmp_path / f".whole.bin.{owner}-0.unfinished").write_bytes(b"half")
    (tmp_path / f".other.bin.{ended}-0.unfinished").write_bytes(b"half")
    with new_file(tmp_path / "whole.bin") as file:
        file.write(b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted(
        [f".other.bin.{ended}-0.unfinished", *(f".whole.bin.{of}-0.unfinished" for of in (living, own)), "whole.bin"]
    )


def _touched(path: Path) -> Path:
    path.touch()
    return path
