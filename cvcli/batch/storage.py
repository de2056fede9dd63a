"""What a run asks of the place where files are: this machine's disk, or a store of another kind.

`storage_of` a path or an address gives what answers for it. Planning asks what is there; workers
read and write, from many threads at once.
"""

# System calls go by their own names here, as which of them is made is the point.
# ruff: noqa: PTH112, PTH113, PTH116, PTH123

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from cvcli.batch import files
from cvcli.batch.files import Buffer, Identity, Stamp
from cvcli.batch.places import Place, scheme_of

Where = str | Place
Output = tuple[Place, Sequence[Buffer]]
"""Where a file goes, and the parts that it is made of."""


class Status(Protocol):
    """What is known of a file without reading it."""

    @property
    def st_mode(self) -> int:
        """Kind and permissions, as `os.stat` has them."""

    @property
    def st_mtime_ns(self) -> int | None:
        """When it was last changed, where the store knows."""


class Entry(Protocol):
    """A name in a folder."""

    @property
    def name(self) -> str:
        """The name, without the folder."""

    @property
    def path(self) -> str:
        """The name with the folder."""

    def is_symlink(self) -> bool:
        """Whether it is a link."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file."""


class Storage(Protocol):
    """A place for files. What fails raises `OSError` while planning and `ImageError` in a run."""

    def look(self, paths: Sequence[str]) -> None:
        """Forget what was seen, and ask for many files at once if one by one would take long."""

    def is_folder(self, path: Where) -> bool:
        """Whether a folder is there."""

    def exists(self, path: Where) -> bool:
        """Whether the name is taken, be it by a broken link."""

    def identity(self, path: str) -> Identity | None:
        """What makes two spellings one file, None where there is no file."""

    def input_trouble(self, path: str) -> str | None:
        """Why this can't be an input file, or None."""

    def folder_trouble(self, folder: str) -> str | None:
        """Why files can't be put into a folder, made if missing; None if nothing speaks against."""

    def entries(self, folder: str) -> Sequence[Entry]:
        """What is in a folder, in any order."""

    def statuses(self, paths: Iterable[str]) -> Iterator[Status | OSError | None]:
        """For each path what is there, None for nothing, or why that isn't known."""

    def changed_ns(self, path: str) -> int | None:
        """When a file was last changed, None where that isn't known."""

    def head(self, path: Where, nbytes: int) -> bytes:
        """The first bytes of a file; `OSError` if it can't be read."""

    def read(self, path: Place, *, stamped: bool = True) -> tuple[bytes, Stamp | None]:
        """All bytes of a file that holds at least one, and if ``stamped`` what else is known."""

    def write(self, path: Place, data: bytes, *, overwrite: bool) -> None:
        """Put ``data`` at ``path``, whole or not at all, as `files.write_atomic` does."""

    def write_together(
        self, outputs: Sequence[Output], *, overwrite: bool, stamp: Stamp | None = None
    ) -> None:
        """Put several files in place, all of them or none where that can be had.

        Each is whole or absent. If one can't be put, those that are new are taken away again.
        """

    def remove_stale(self, folder: str) -> int:
        """Remove what dead processes of this machine left half-written in a folder; how many."""


class Local:
    """The file systems of this machine."""

    def look(self, paths: Sequence[str]) -> None:
        pass

    def is_folder(self, path: Where) -> bool:
        return os.path.isdir(path)

    def exists(self, path: Where) -> bool:
        return os.path.lexists(path)

    def identity(self, path: str) -> Identity | None:
        return files.identity_of(path)

    def input_trouble(self, path: str) -> str | None:
        return files.input_trouble(path)

    def folder_trouble(self, folder: str) -> str | None:
        return files.folder_trouble(folder)

    def entries(self, folder: str) -> Sequence[Entry]:
        with os.scandir(folder) as scan:
            return list(scan)

    def statuses(self, paths: Iterable[str]) -> Iterator[Status | OSError | None]:
        for path in paths:
            try:
                yield os.lstat(path)
            except FileNotFoundError:
                yield None
            except OSError as error:
                yield error

    def changed_ns(self, path: str) -> int | None:
        try:
            return os.stat(path).st_mtime_ns
        except OSError:
            return None

    def head(self, path: Where, nbytes: int) -> bytes:
        # Opening what is no regular file, such as a pipe, could wait for ever.
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(nbytes)

    def read(self, path: Place, *, stamped: bool = True) -> tuple[bytes, Stamp | None]:
        return files.read_stamped(Path(path))

    def write(self, path: Place, data: bytes, *, overwrite: bool) -> None:
        files.write_atomic(Path(path), data, overwrite=overwrite)

    def write_together(
        self, outputs: Sequence[Output], *, overwrite: bool, stamp: Stamp | None = None
    ) -> None:
        pairs = [(Path(path), parts) for path, parts in outputs]
        files.write_together(pairs, overwrite=overwrite, stamp=stamp)

    def remove_stale(self, folder: str) -> int:
        return files.remove_stale(Path(folder))


_LOCAL = Local()
_REMOTE: dict[str, Storage] = {}
_LOCK = threading.Lock()


def storage_of(path: Where) -> Storage:
    """Return what answers for a path or an address; `UsageError` if nothing does."""
    text = os.fspath(path)
    if "://" not in text or (scheme := scheme_of(text)) is None:
        return _LOCAL
    return _remote(scheme)


def look_ahead(paths: Iterable[str]) -> None:
    """Ask each storage for all that a plan is going to ask for one by one."""
    groups: dict[str, list[str]] = {scheme: [] for scheme in _REMOTE}
    for path in paths:
        if "://" in path and (scheme := scheme_of(path)) is not None:
            groups.setdefault(scheme, []).append(path)
    for scheme, group in groups.items():
        _remote(scheme).look(group)


def _remote(scheme: str) -> Storage:
    with _LOCK:
        if scheme not in _REMOTE:
            from cvcli.batch.remote import Remote

            _REMOTE[scheme] = Remote(scheme)
        return _REMOTE[scheme]
