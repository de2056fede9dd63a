"""What would lose a file: two inputs for one output, or an output that is an input."""

# ruff: noqa: PTH120

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from cvcli.batch.inputs import Found
from cvcli.batch.places import place
from cvcli.batch.storage import storage_of
from cvcli.errors import UsageError

_SHOWN = 3
_TIP = "give these inputs separate output folders, or tell them apart with --name or --base"


def fold(name: str) -> str:
    """Equal for names that some file system takes for one: by case, or by composed letters."""
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFC", name).casefold())


def refuse_collisions(files: Sequence[Found]) -> None:
    """Raise `UsageError` if two files have one output, or one is a folder of another."""
    # Hashes of names take a tenth of the room, and only what they suspect is looked at.
    hashes, folders = array("q"), set[int]()
    for write in _writes(files):
        key = fold(write.relative)
        hashes.append(hash(key))
        for folder in _folders_of(key):
            if hash(folder) in folders:
                break
            folders.add(hash(folder))
    if any(a == b for a, b in pairwise(sorted(hashes))) or not folders.isdisjoint(hashes):
        _refuse_clashes(files)


def _refuse_clashes(files: Iterable[Found]) -> None:
    writers: dict[str, _Write] = {}
    groups: dict[str, list[_Write]] = {}
    for write in _writes(files):
        key = fold(write.relative)
        first = writers.setdefault(key, write)
        if first is not write:
            groups.setdefault(key, [first]).append(write)
    clashes = list(groups.values())
    if not clashes:
        return _refuse_file_as_folder(writers)
    shown = "; ".join(map(_describe_clash, clashes[:_SHOWN]))
    more = f"; and {len(clashes) - _SHOWN} more such outputs" if len(clashes) > _SHOWN else ""
    raise UsageError(shown + more, tip=_TIP)


class _Write(NamedTuple):
    """One output of an input."""

    path: str
    relative: str
    output: str


def _writes(files: Iterable[Found]) -> Iterator[_Write]:
    for file in files:
        if file.trouble is None:
            yield _Write(file.path, file.relative, file.output)
            for relative, output in file.more:
                yield _Write(file.path, relative, output)


def _describe_clash(group: Sequence[_Write]) -> str:
    number = "two" if len(group) == 2 else str(len(group))
    names = ", ".join(str(place(write.path)) for write in group[:_SHOWN])
    more = ", …" if len(group) > _SHOWN else ""
    return f"{place(group[0].output)}: {number} inputs would write it ({names}{more})"


def _refuse_file_as_folder(writers: dict[str, _Write]) -> None:
    """No output may take the name of a folder that holds another output."""
    holds: dict[str, _Write] = {}
    for key, write in writers.items():
        for folder in _folders_of(key):
            if folder in holds:
                break
            holds[folder] = write
    for key in writers.keys() & holds.keys():
        one, other = writers[key], holds[key]
        raise UsageError(
            f"{place(one.output)}: would be a file and a folder ({place(one.path)}, "
            f"{place(other.path)})",
            tip=_TIP,
        )


def _folders_of(name: str) -> Iterable[str]:
    while name := os.path.dirname(name):
        yield name


class Claims:
    """Output names taken so far, where inputs come one after the other."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def claim(self, relatives: Sequence[str], path: str) -> str | None:
        """Take names for an input; return what speaks against them instead, if anything does."""
        for relative in relatives:
            if trouble := self._taken(relative):
                return trouble
        for relative in relatives:
            key = fold(relative)
            self._files[key] = path
            for folder in _folders_of(key):
                self._folders.setdefault(folder, path)
        return None

    def _taken(self, relative: str) -> str | None:
        key = fold(relative)
        other = self._files.get(key) or self._folders.get(key)
        folders = _folders_of(key)
        other = other or next((self._files[f] for f in folders if f in self._files), None)
        return None if other is None else f"{Path(other)} has the same output, {Path(relative)}"


def refuse_inputs_as_outputs(files: Sequence[Found], there: Mapping[str, object]) -> None:
    """Raise `UsageError` if an output is an input, by whatever name.

    Only an output that is ``there`` can be an input, so a fresh folder costs nothing.
    """
    outputs = [(output, storage_of(output).identity(output)) for output in there]
    if not outputs:
        return
    inputs = {
        identity: file.path
        for file in files
        if (identity := storage_of(file.path).identity(file.path))
    }
    for output, identity in outputs:
        if identity in inputs:
            source = place(inputs[identity])
            raise UsageError(
                f"{source}: input would be overwritten (by output {place(output)})",
                tip="choose another output folder, or --in-place to replace the inputs",
            )
