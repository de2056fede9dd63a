"""Files in the stores that fsspec reaches: buckets, servers, the web.

A store of objects takes each of them whole, by one put. Where names can be changed at once, as on
a server of files, an output is written under a temporary name first. fsspec is imported only for
an address, and what it needs for one kind of store is the user's to install.
"""

from __future__ import annotations

import errno
import inspect
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from cvcli.batch.files import EXISTS_TIP, Identity, Stamp, is_stale, reason, temporary_name
from cvcli.batch.places import Place, is_web, joined, name_of, parent_of
from cvcli.batch.storage import Output
from cvcli.batch.stores import failures, moment_of, opened
from cvcli.errors import ImageError

# Requests at once while a plan is made: each is mostly waiting.
_AT_ONCE = 32
# So many files of one folder are told by listing it rather than by asking for each.
_LISTED = 16
_OBJECTS = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}


@dataclass(frozen=True, slots=True)
class Info:
    """What a store says of a name; at once an entry of a folder and the status of a file."""

    path: str
    folder: bool
    st_mtime_ns: int | None

    @property
    def name(self) -> str:
        return name_of(self.path)

    @property
    def st_mode(self) -> int:
        return stat.S_IFDIR | 0o755 if self.folder else stat.S_IFREG | 0o644

    def is_symlink(self) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.folder

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.folder


Look = Info | OSError | None


class Remote:
    """All stores of one scheme, such as ``s3``; raises `UsageError` if they can't be reached."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self._systems: dict[str, Any] = {}
        self._folders: set[str] = set()
        self._known: dict[str, Look] = {}
        self._lock = threading.RLock()

    def _at(self, path: str | Place) -> tuple[Any, str]:
        """Return the file system of an address, and what it calls the file."""
        text = os.fspath(path)
        host = text.split("/", 3)[2]
        with self._lock:
            if host not in self._systems:
                self._systems[host] = opened(text, self._scheme)
        system = self._systems[host]
        return system, system._strip_protocol(text)

    def _guard(self, system: Any) -> AbstractContextManager[Any]:
        """Clients that aren't made for threads, such as that of FTP, serve one at a time."""
        alone = not system.async_impl and self._scheme != "memory"
        return self._lock if alone else nullcontext()

    def look(self, paths: Sequence[str]) -> None:
        self._known = {}
        if paths and not is_web(paths[0]):
            self._known.update(zip(paths, self.statuses(paths), strict=True))

    def _seen(self, path: str | Place) -> Look:
        text = os.fspath(path)
        if text in self._known:
            return self._known[text]
        return next(self.statuses([text]))

    def is_folder(self, path: str | Place) -> bool:
        text = os.fspath(path)
        if is_web(text):
            return text.endswith("/")
        seen = self._seen(text)
        return isinstance(seen, Info) and seen.folder

    def exists(self, path: str | Place) -> bool:
        return isinstance(self._seen(path), Info)

    def identity(self, path: str) -> Identity | None:
        return self._scheme, os.fspath(self._at(path)[1]).rstrip("/")

    def input_trouble(self, path: str) -> str | None:
        if is_web(path):
            return None  # asking would cost as much as reading, and not every server answers
        seen = self._seen(path)
        if isinstance(seen, OSError):
            return reason(seen)
        if seen is None:
            return reason(FileNotFoundError(errno.ENOENT, ""))
        return "not a regular file" if seen.folder else None

    def folder_trouble(self, folder: str) -> str | None:
        self._at(folder)
        return "nothing can be written to the web" if is_web(folder) else None

    def entries(self, folder: str) -> list[Info]:
        infos = self._list(folder)
        self._known.update((info.path, info) for info in infos)
        return infos

    def _list(self, folder: str) -> list[Info]:
        system, inner = self._at(folder)
        with failures(), self._guard(system):
            system.invalidate_cache(inner)
            found = system.ls(inner, detail=True)
        itself = inner.rstrip("/")
        return [_info(folder, entry) for entry in found if entry["name"].rstrip("/") != itself]

    def statuses(self, paths: Iterable[str]) -> Iterator[Look]:
        wanted = list(paths)
        groups: dict[str, list[str]] = {}
        for path in wanted:
            groups.setdefault(parent_of(path), []).append(path)
        tasks: list[Callable[[], dict[str, Look]]] = []
        for folder, group in groups.items():
            if len(group) >= _LISTED:
                tasks.append(partial(self._listed, folder, group))
            else:
                tasks += [partial(self._asked, path) for path in group]
        found: dict[str, Look] = {}
        with ThreadPoolExecutor(max(1, min(_AT_ONCE, len(tasks)))) as pool:
            for part in pool.map(lambda task: task(), tasks):
                found |= part
        return iter([found[path] for path in wanted])

    def _listed(self, folder: str, paths: Sequence[str]) -> dict[str, Look]:
        try:
            known = {info.path: info for info in self._list(folder)}
        except FileNotFoundError:
            known = {}
        except OSError as error:
            return dict.fromkeys(paths, error)
        return {path: known.get(path) for path in paths}

    def _asked(self, path: str) -> dict[str, Look]:
        system, inner = self._at(path)
        try:
            with failures(), self._guard(system):
                system.invalidate_cache(inner)
                return {path: _info(parent_of(path), system.info(inner), path)}
        except FileNotFoundError:
            return {path: None}
        except OSError as error:
            return {path: error}

    def changed_ns(self, path: str) -> int | None:
        seen = None if is_web(path) else self._seen(path)
        return seen.st_mtime_ns if isinstance(seen, Info) else None

    def head(self, path: str | Place, nbytes: int) -> bytes:
        system, inner = self._at(path)
        with failures(), self._guard(system):
            return bytes(system.cat_file(inner, start=0, end=nbytes))

    def read(self, path: Place, *, stamped: bool = True) -> tuple[bytes, Stamp | None]:
        system, inner = self._at(path)
        try:
            with failures(), self._guard(system):
                data = bytes(system.cat_file(inner))
        except OSError as error:
            raise ImageError(f"{path}: {reason(error)}") from error
        if not data:
            raise ImageError(f"{path}: empty file")
        if not stamped:
            return data, None
        return data, Stamp(0o644, self.changed_ns(os.fspath(path)) or 0, len(data), (0, 0))

    def write_together(
        self, outputs: Sequence[Output], *, overwrite: bool, stamp: Stamp | None = None
    ) -> None:
        paths = [os.fspath(path) for path, _ in outputs]
        # Without overwrite whatever was put is new, and a single file leaves none before it.
        asked = self.statuses(paths) if overwrite and len(paths) > 1 else [None] * len(paths)
        new: list[str] = []
        try:
            for (path, parts), there in zip(outputs, asked, strict=True):
                self.write(path, b"".join(parts), overwrite=overwrite)
                if there is None:
                    new.append(os.fspath(path))
        except BaseException:
            self._take_away(new)
            raise

    def _take_away(self, paths: Iterable[str]) -> None:
        for path in paths:
            system, inner = self._at(path)
            with suppress(Exception), self._guard(system):
                system.rm_file(inner)

    def write(self, path: Place, data: bytes, *, overwrite: bool) -> None:
        system, inner = self._at(path)
        try:
            with failures(), self._guard(system):
                if self._renames(system):
                    self._write_and_rename(system, inner, data, overwrite)
                else:
                    _put(system, inner, data, overwrite)
        except FileNotFoundError as error:
            raise ImageError(f"{path}: there is no such bucket or folder") from error
        except OSError as error:
            tip = EXISTS_TIP if error.errno == errno.EEXIST else None
            raise ImageError(f"{path}: {reason(error)}", tip) from error

    def _renames(self, system: Any) -> bool:
        from fsspec.spec import AbstractFileSystem

        return self._scheme not in _OBJECTS and type(system).mv is not AbstractFileSystem.mv

    def _write_and_rename(self, system: Any, inner: str, data: bytes, overwrite: bool) -> None:
        folder = inner.rpartition("/")[0]
        if folder not in self._folders:
            system.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        temporary = f"{folder}/{temporary_name()}"
        try:
            system.pipe_file(temporary, data)
            if not overwrite and system.exists(inner):
                raise FileExistsError(errno.EEXIST, "")
            _rename(system, temporary, inner, overwrite)
        except BaseException:
            self._folders.discard(folder)
            with suppress(Exception):
                system.rm_file(temporary)
            raise

    def remove_stale(self, folder: str) -> int:
        system, _ = self._at(folder)
        if not self._renames(system):
            return 0
        try:
            stale = [info for info in self._list(folder) if is_stale(info.name)]
        except OSError:
            return 0
        with self._guard(system):
            for info in stale:
                with suppress(Exception):
                    system.rm_file(self._at(info.path)[1])
        return len(stale)


def _info(folder: str, found: dict[str, Any], path: str | None = None) -> Info:
    name = found["name"].rstrip("/").rpartition("/")[2]
    kind = found.get("type") == "directory"
    return Info(path or joined(folder, name), kind, moment_of(found))


def _rename(system: Any, temporary: str, inner: str, overwrite: bool) -> None:
    try:
        system.mv(temporary, inner)
    except FileExistsError:
        # Some servers of files never rename onto one: for a moment there is none of that name.
        if not overwrite:
            raise
        system.rm_file(inner)
        system.mv(temporary, inner)


def _put(system: Any, inner: str, data: bytes, overwrite: bool) -> None:
    """Put an object whole; one that isn't taken whole after all is removed again."""
    own = getattr(type(system), "_pipe_file", None) or type(system).pipe_file
    takes_mode = "mode" in inspect.signature(own).parameters
    if not overwrite and not takes_mode and system.exists(inner):
        raise FileExistsError(errno.EEXIST, "")
    mode = {} if overwrite or not takes_mode else {"mode": "create"}
    before = _version(system, inner) if _is_piecemeal(system) else None
    try:
        system.pipe_file(inner, data, **mode)
    except FileExistsError:
        raise
    except BaseException:
        if _is_piecemeal(system) and _version(system, inner) not in (None, before):
            with suppress(Exception):
                system.rm_file(inner)
        raise


def _is_piecemeal(system: Any) -> bool:
    """Whether a put is no more than opening, writing and closing."""
    from fsspec.spec import AbstractFileSystem

    return not system.async_impl and type(system).pipe_file is AbstractFileSystem.pipe_file


def _version(system: Any, inner: str) -> object:
    """Return what tells an object from another that had its name before, None for none."""
    with suppress(Exception):
        system.invalidate_cache(inner)
        found = system.info(inner)
        return found.get("size"), moment_of(found), found.get("ETag") or found.get("etag")
    return None
