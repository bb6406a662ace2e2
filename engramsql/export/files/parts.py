"""An export into a directory of files with a manifest, that goes on after a failure.

It grows under a name of its own beside its place, and gets its name when its last file is complete. Until then each
file that is complete stands in the manifest with its checksum.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from engramsql.errors import ArgumentError, StorageError
from engramsql.export.files.manifest import (
    MANIFEST,
    Part,
    check_files,
    difference,
    finished,
    fixed_of,
    listed,
    manifest_of,
    read_manifest,
    sha256_of,
)
from engramsql.export.files.pipeline import computed, waited_for
from engramsql.export.files.single import Filling, filling
from engramsql.export.files.sink import Sink
from engramsql.publishing import new_file, storage_errors, sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engramsql.export.files.source import Source
    from engramsql.export.files.writer import Layout
    from engramsql.progress import Progress

__all__ = ["write_parts"]

_LOCK = ".lock"


def write_parts(
    path: Path,
    layout: Layout,
    source: Source,
    rows_per_file: int,
    *,
    resume: bool,
    restart: bool,
    replace: bool,
    progress: Progress | None,
) -> list[Part]:
    """Writes the records of a source into files of ``rows_per_file`` each, in a directory with a manifest.

    Raises:
        ArgumentError: If the directory exists and is not to be replaced, or a value has no place in such files; or if
            there is an unfinished export of another kind.
        StorageError: If there is an unfinished export and neither ``resume`` nor ``restart``; if the system refuses.
    """
    fixed = fixed_of(layout, source, rows_per_file)
    if resume and (found := finished(path, fixed)) is not None:
        return found
    _check_place(path, replace=replace)
    unfinished = path.with_name(f".{path.name}.unfinished")
    with storage_errors(path), _begun(unfinished, path, resume=resume, restart=restart) as going:
        # Another process may have completed its export while this one looked for the lock.
        _check_place(path, replace=replace)
        parts = _parts_of(unfinished, fixed, path) if going else []
        export = _Parts(unfinished, layout, fixed, source, rows_per_file, parts)
        try:
            export.run(progress)
            source.check_unchanged()
            export.complete()
        except BaseException:
            if not (source.resumable and export.parts):
                # Nothing that could go on.
                shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _publish(unfinished, path, replace=replace)
    return export.parts


def _check_place(path: Path, *, replace: bool) -> None:
    """Refuses a place that has something already, unless it is an export that is to be replaced."""
    if not os.path.lexists(path):
        return
    if not replace:
        raise ArgumentError(f"'{path}' exists already; name a new directory, or replace it (--replace, replace=True)")
    if not path.is_dir() or path.is_symlink() or _foreign(path):
        raise ArgumentError(f"'{path}' is no directory of an export alone, so it is not replaced; name another one")


@contextmanager
def _begun(unfinished: Path, path: Path, *, resume: bool, restart: bool) -> Iterator[bool]:
    """The unfinished directory, which nobody else writes to meanwhile; whether it goes on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(unfinished, path)
    try:
        old = _old(path)
        if old.is_dir() and not os.path.lexists(path):
            # A kill between the two renames of a replacement.
            os.rename(old, path)
        # A directory that was killed before its first manifest has nothing to go on with.
        going = (unfinished / MANIFEST).exists()
        if going and not (resume or restart):
            raise StorageError(
                f"there is an unfinished export to '{path}'; go on with it (--resume, resume=True) or throw it away "
                "(--restart, restart=True)"
            )
        if going and restart:
            going = False
        if not going:
            _clear(unfinished, set())
        yield going
    finally:
        # What has no manifest is nothing to go on with; by now the directory may be another's.
        if _is_lock(descriptor, unfinished) and not (unfinished / MANIFEST).exists():
            shutil.rmtree(unfinished, ignore_errors=True)
        os.close(descriptor)


def _locked(unfinished: Path, path: Path) -> int:
    """The descriptor of the lock of the unfinished directory, which is made if there is none."""
    while True:
        unfinished.mkdir(exist_ok=True)
        try:
            descriptor = os.open(unfinished / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # It just got its name.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StorageError(f"another process is exporting to '{path}'") from None
        # Whoever had it may have given the directory its name since it was opened here.
        if _is_lock(descriptor, unfinished):
            return descriptor
        os.close(descriptor)


def _is_lock(descriptor: int, unfinished: Path) -> bool:
    """Whether an open lock is the one of the directory that has the name now."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(unfinished / _LOCK))
    except FileNotFoundError:
        return False


def _clear(directory: Path, kept: set[str]) -> None:
    for left in directory.iterdir():
        if left.name in kept | {_LOCK}:
            continue
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()


def _parts_of(unfinished: Path, fixed: dict[str, Any], path: Path) -> list[Part]:
    """The files of an unfinished export that are complete, each looked at.

    Raises:
        ArgumentError: If it is another export, or a file of it is not what was written.
    """
    manifest = read_manifest(unfinished)
    if (what := difference(manifest, fixed)) is not None:
        raise ArgumentError(
            f"{what} changed since the unfinished export to '{path}' was begun; repeat the command as it was, or throw "
            "it away (--restart, restart=True)"
        )
    parts = listed(manifest, unfinished)
    _clear(unfinished, {MANIFEST, *(part.file for part in parts)})
    check_files(unfinished, parts, "throw the unfinished export away (--restart, restart=True)")
    return parts


def _foreign(path: Path) -> bool:
    """Whether a directory has anything but an export."""
    try:
        manifest = read_manifest(path)
        # A kill just after it got its name leaves the lock.
        known = {MANIFEST, _LOCK, *(part.file for part in listed(manifest, path))}
    except ArgumentError:
        return True
    return any(name not in known for name in os.listdir(path))


def _old(path: Path) -> Path:
    """Where an export waits that is being replaced."""
    return path.with_name(f".{path.name}.replaced")


def _publish(unfinished: Path, path: Path, *, replace: bool) -> None:
    """Gives the export its name; an export of that name is removed when the new one is there.

    Raises:
        ArgumentError: If something came to be there meanwhile that is not to be replaced.
    """
    sync_directory(unfinished)
    old = _old(path)
    _check_place(path, replace=replace)
    replaced = path.is_dir()
    if replaced:
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
    try:
        # It takes the place of nothing, or of an empty directory.
        os.rename(unfinished, path)
    except OSError:
        if replaced:
            os.rename(old, path)
        raise
    # Until now: without it another process would begin in the directory.
    (path / _LOCK).unlink()
    sync_directory(path.parent)
    shutil.rmtree(old, ignore_errors=True)


class _Parts:
    """Files one after the other; one is hashed and synced while the next is filled."""

    def __init__(
        self,
        directory: Path,
        layout: Layout,
        fixed: dict[str, Any],
        source: Source,
        rows_per_file: int,
        parts: list[Part],
    ) -> None:
        self._directory, self._layout, self._fixed, self._source = directory, layout, fixed, source
        self._rows_per_file = rows_per_file
        self._stopped = threading.Event()
        self.parts = parts

    def run(self, progress: Progress | None) -> None:
        """Writes what is missing."""
        if not self.parts:
            self._save(complete=False)
        with ThreadPoolExecutor(1, thread_name_prefix="engramsql-export-seal") as sealer:
            try:
                self._fill(sealer, progress)
            except KeyboardInterrupt:
                # A file may have many gigabytes to be hashed yet.
                self._stopped.set()
                raise

    def _fill(self, sealer: ThreadPoolExecutor, progress: Progress | None) -> None:
        sealing: list[Future[None]] = []
        first = sum(part.rows for part in self.parts)
        if self.parts and self.parts[-1].rows < self._rows_per_file:
            return  # The last file is the only one that may be shorter.
        with computed(self._source, first, self._rows_per_file) as batches, _Current(self) as current:
            for batch, done in batches:
                current.write(batch)
                if current.rows >= self._rows_per_file:
                    sealing.append(sealer.submit(self._seal, current.finish()))
                    if len(sealing) > 1:
                        waited_for(sealing.pop(0))
                if progress is not None:
                    progress("writing", done, self._source.total)
            # An export of no records is one file without records: its columns are there.
            if current.rows or (not self.parts and not sealing):
                sealing.append(sealer.submit(self._seal, current.finish()))
        for future in sealing:
            waited_for(future)

    def _seal(self, filled: _Filled) -> None:
        """Makes a file that is complete a part of the export."""
        growing = self._directory / f".{filled.name}.growing"
        part = Part(filled.name, filled.rows, growing.stat().st_size, sha256_of(growing, self._stopped.is_set))
        with open(growing, "rb+", buffering=0) as file:
            os.fsync(file.fileno())
            # Nobody reads it again here.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.rename(growing, self._directory / filled.name)
        sync_directory(self._directory)
        self.parts.append(part)
        self._save(complete=False)

    def complete(self) -> None:
        """Says that nothing is missing."""
        self._save(complete=True)

    def _save(self, *, complete: bool) -> None:
        manifest = manifest_of(self._fixed, self.parts, complete=complete)
        with new_file(self._directory / MANIFEST, replace=True) as file:
            file.write(json.dumps(manifest, indent=1).encode() + b"\n")

    def grow(self, name: str) -> IO[bytes]:
        """A new file for a part."""
        return open(self._directory / f".{name}.growing", "wb")

    def name(self, index: int) -> str:
        """Name of a part."""
        return f"part-{index:05d}{self._layout.format.endings[0]}"

    @property
    def layout(self) -> Layout:
        """What all files have in common."""
        return self._layout


@dataclass(frozen=True)
class _Filled:
    name: str
    rows: int


class _Current:
    """The file that is being filled."""

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts
        self._index = len(parts.parts)
        self._stack = ExitStack()
        self._filling: Filling | None = None
        self.rows = 0

    def write(self, batch: Any) -> None:
        """Adds records that have room in it."""
        self._open().writer.write(batch)
        self.rows += batch.num_rows

    def _open(self) -> Filling:
        if self._filling is None:
            file = self._stack.enter_context(self._parts.grow(self._parts.name(self._index)))
            self._filling = self._stack.enter_context(filling(self._parts.layout, Sink(file.fileno(), keep=True)))
        return self._filling

    def finish(self) -> _Filled:
        """Completes the file; the next record begins another one."""
        self._open()
        self._stack.close()
        filled = _Filled(self._parts.name(self._index), self.rows)
        self._filling, self.rows, self._index = None, 0, self._index + 1
        return filled

    def __enter__(self) -> _Current:
        return self

    def __exit__(self, *details: Any) -> None:
        if details[0] is None:
            return
        self._stack.__exit__(*details)
