"""From what was named (files, folders, patterns, lists) to files, each of them once."""

# Paths are strings in here: a Path for each step would take most of the time of a large plan.
# ruff: noqa: PTH100, PTH112, PTH122

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path

from cvcli.batch.files import Identity, reason
from cvcli.batch.patterns import Filter, compiled, has_magic
from cvcli.batch.places import Place, below, name_of, place
from cvcli.batch.rules import Rules
from cvcli.batch.storage import Entry, Storage, storage_of
from cvcli.errors import ImageError, UsageError

NO_MATCH = "matches no image files"
_HEAD_NBYTES = 32
# Parts of a key in a bucket that would lead out of the output folder, or nowhere.
_NO_NAMES = ("", ".", "..")


@dataclass(slots=True)
class Found:
    """An input on its way to a Job or, once it has ``trouble``, a Problem.

    ``relative`` is the place under the folder that was named, later under the output folder;
    ``more`` are the places and outputs of its pictures behind the first, where each has its own.
    """

    path: str
    relative: str
    trouble: str | None = None
    tip: str | None = None
    output: str = ""
    format: str | None = None
    mtime_ns: int | None = None
    more: tuple[tuple[str, str], ...] = ()
    by_suffix: bool = False
    """Whether the format is the one that the file's own suffix stands for."""

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Every place under the output folder, with the output that is there."""
        return (self.relative, self.output), *self.more


@dataclass(frozen=True, slots=True)
class _Search:
    """One walk: which files of it are wanted, how deep it goes, and what it has seen."""

    wanted: Callable[[str], bool]
    chosen: bool
    depth: int
    hidden: bool
    walked: set[Identity | None]


class Finder:
    """Expands inputs to files: the first mention of a file wins."""

    def __init__(self, output: Place | None, rules: Rules) -> None:
        from cvcli.codecs import readable

        self.files: list[Found] = []
        self.several = False
        """Whether a folder or a pattern was named, which stand for any number of files."""
        self.has_subfolders = False
        self._rules = rules
        self._filter = Filter(rules.include, rules.exclude)
        self._readable = readable
        self._output = None if output is None else _identity_of(os.fspath(output))
        self._base = None if rules.base is None else os.fspath(rules.base)
        self._found = 0
        self._taken: dict[object, set[str]] = {}
        self._identify = cache(_identity_of)
        depth = 1 << 30 if rules.recursive else 1
        chosen = self._filter.chooses
        self._folders = _Search(self._filter.takes, chosen, depth, rules.hidden, set())

    def add(self, path: str, *, literal: bool = False) -> None:
        """Take a file, what is in a folder, or unless ``literal`` what a pattern matches."""
        storage = storage_of(path)
        if storage.is_folder(path):
            self.several = True
            self._walk(path, self._folders)
        elif not literal and has_magic(path) and not storage.exists(path):
            self.several = True
            self._match(path)
        else:
            self._take_named(path, storage)

    def _take_named(self, path: str, storage: Storage) -> None:
        parent, name = os.path.split(path)
        key = self._identify(parent or os.curdir) or os.path.abspath(parent)
        relative = self._place(path, name_of(path) if "://" in path else name)
        self._take(key, name, Found(path, relative, storage.input_trouble(path)))

    def _place(self, path: str, name: str) -> str:
        if self._base is None:
            return name
        relative = below(path, self._base)
        if relative is None:
            raise UsageError(f"{place(path)}: is not below --base {self._rules.base}")
        return relative

    def _match(self, pattern: str) -> None:
        parts = pattern.split("/")
        fixed = next(number for number, part in enumerate(parts) if has_magic(part))
        top = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else os.curdir)
        rest = "/".join(parts[fixed:])
        rule, deep = compiled(rest), "**" in parts
        hidden = self._rules.hidden or any(part.startswith(".") for part in parts[fixed:])

        def wanted(relative: str) -> bool:
            return rule.fullmatch(relative) is not None and self._filter.takes(relative)

        depth = 1 << 30 if deep else len(parts) - fixed
        before = self._found
        if storage_of(top).is_folder(top):
            self._walk(top, _Search(wanted, True, depth, hidden, set()))
        if self._found == before:
            self.files.append(Found(pattern, rest, NO_MATCH))

    def _take(self, folder: object, name: str, file: Found) -> None:
        self._found += 1
        taken = self._taken.setdefault(folder, set())
        if name not in taken:
            taken.add(name)
            self.files.append(file)

    def _walk(self, top: str, search: _Search) -> None:
        """Take a folder's files, by name. A folder that can be reached both directly and through
        a link is read where it really is, so links are followed last."""
        start = len(self.files)
        prefix = self._place(top, "") if self._base is not None else ""
        todo = [(False, "", top)]
        while todo:
            _, relative, folder = heappop(todo)
            identity = _identity_of(folder)
            if identity in search.walked or (relative and identity == self._output):
                continue
            search.walked.add(identity)
            for subfolder in self._read_folder(folder, relative, identity, search):
                heappush(todo, subfolder)
        # NUL sorts before all that a name can hold, so the order is that of whole path parts.
        found = sorted(self.files[start:], key=lambda file: file.relative.replace("/", "\0"))
        for file in found if prefix not in ("", os.curdir) else ():
            file.relative = f"{prefix}/{file.relative}"
        self.files[start:] = found

    def _read_folder(
        self, folder: str, relative: str, identity: Identity | None, search: _Search
    ) -> Iterable[tuple[bool, str, str]]:
        try:
            found = iter(storage_of(folder).entries(folder))
            entries = [e for e in found if search.hidden or not e.name.startswith(".")]
        except OSError as error:
            self.files.append(Found(folder, relative, reason(error)))
            return
        entries.reverse()
        while entries:
            # Let go of one by one: there may be very many.
            entry = entries.pop()
            if entry.name in _NO_NAMES:
                trouble: str | None = "its name can't be mirrored"
                self.files.append(Found(entry.path, relative, trouble))
                continue
            linked = entry.is_symlink()
            name = f"{relative}/{entry.name}" if relative else entry.name
            if os.path.isdir(entry.path) if linked else entry.is_dir(follow_symlinks=False):
                self.has_subfolders = True
                if name.count("/") + 1 < search.depth and not self._filter.prunes(name):
                    yield linked, name, entry.path
            elif search.wanted(name) and self._is_image(entry, search.chosen):
                regular = entry.is_file(follow_symlinks=False)
                trouble = None if regular else storage_of(entry.path).input_trouble(entry.path)
                self._take(identity, entry.name, Found(entry.path, name, trouble))

    def _is_image(self, entry: Entry, chosen: bool) -> bool:
        """Return whether a file found is an image: by its suffix, without one by its content.

        Where a pattern asked for it, the content counts whatever the suffix: a ``.bak`` that lies
        about is not meant, but one that is asked for is.
        """
        suffix = os.path.splitext(entry.name)[1]
        return self._readable(suffix) or ((chosen or not suffix) and _holds_image(entry.path))


def _identity_of(path: str) -> Identity | None:
    return storage_of(path).identity(path)


def _holds_image(path: str) -> bool:
    from cvcli.codecs import recognised

    try:
        return recognised(storage_of(path).head(path, _HEAD_NBYTES))
    except OSError:
        return False


def listed(source: str, *, null: bool) -> list[str]:
    """Return the paths that a file, or stdin for ``-``, lists: a line each, or ended by NUL."""
    try:
        if source == "-":
            data = b"" if sys.stdin is None else sys.stdin.buffer.read()
        elif "://" in source:
            data = storage_of(source).read(place(source), stamped=False)[0]
        else:
            data = Path(source).read_bytes()
    except ImageError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{source}: the list can't be read ({reason(error)})") from None
    names = data.split(b"\0" if null else b"\n")
    return [os.fsdecode(name) for name in names if name]
