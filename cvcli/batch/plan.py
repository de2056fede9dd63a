"""What one run will do: every input with the output it becomes, before anything is read.

A plan only looks at names and file status. Whatever would lose a file (two inputs for one output,
an output that is an input) is refused as a whole with `UsageError`; what concerns one file alone
(missing, output exists) becomes a `Problem`, and the other files are still done.
"""

# Paths are strings in here: a Path for each step would take most of the time of a large plan.
# ruff: noqa: PTH100, PTH112, PTH118, PTH119, PTH120, PTH122

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from unicodedata import normalize

from cvcli.batch.files import (
    EXISTS_TIP,
    Identity,
    folder_trouble,
    identity_of,
    input_trouble,
    reason,
    refuse_odd_file,
)
from cvcli.errors import NoInputError, UsageError

_SHOWN = 3
_MISSING = reason(FileNotFoundError(errno.ENOENT, ""))


@dataclass(frozen=True, slots=True)
class Job:
    """One image to do. ``index`` is its place among all files of the plan.

    ``format`` names the encoder where the output's suffix or ``--format`` settles it; None stands
    for the input's own format, known once its content is seen.
    """

    index: int
    input: Path
    output: Path
    format: str | None


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that fails before it is read.

    ``output`` is given exactly when it is the output, not the input, that is in the way.
    """

    input: Path
    output: Path | None
    reason: str
    tip: str | None = None
    index: int = 0

    @property
    def message(self) -> str:
        """One sentence that names the file at fault and the reason."""
        return f"{self.output or self.input}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Files in a fixed order: inputs as given, those of a folder by name.

    The indexes of ``jobs``, ``skipped`` and ``problems`` together are 0, 1, … ``len(plan) - 1``.
    """

    jobs: tuple[Job, ...]
    skipped: tuple[Job, ...]
    problems: tuple[Problem, ...]
    output_root: Path

    def __len__(self) -> int:
        """All files, whatever becomes of them."""
        return len(self.jobs) + len(self.skipped) + len(self.problems)


def make_plan(
    inputs: Sequence[Path],
    output: Path,
    *,
    recursive: bool = False,
    format: str | None = None,
    overwrite: bool = False,
    skip_existing: bool = False,
) -> Plan:
    """Decide what becomes of each input; reads no file and leaves the disk as it is."""
    if overwrite and skip_existing:
        raise UsageError("--overwrite and --skip-existing: only one of them can be given")
    output = _without_dots(output)
    naming = _Naming(format)
    finder = _Finder(output, recursive)
    for path in inputs:
        finder.add(os.fspath(path))
    files = finder.files
    if all(file.trouble == _MISSING for file in files):
        raise _nothing_found(inputs, finder)
    root = output
    if _is_file_target(output, finder, naming):
        root = output.parent
        naming.name_one(files[0], os.fspath(output))
    else:
        naming.name_all(files, os.fspath(output))
    if trouble := folder_trouble(os.fspath(root)):
        raise UsageError(f"{output}: {trouble}")
    _refuse_collisions(files)
    in_the_way = _look_at_outputs(files)
    _refuse_inputs_as_outputs(files, in_the_way)
    return _settle(files, in_the_way, root, overwrite, skip_existing)


def _without_dots(output: Path) -> Path:
    """Return where ``new/../in`` leads before ``new`` is made, which is where it leads after."""
    known = os.path.lexists(output) or os.path.lexists(output.parent)
    return output if known or ".." not in output.parts else Path(os.path.realpath(output))


@dataclass(slots=True)
class _File:
    """An input on its way to a Job or, once it has ``trouble``, a Problem.

    ``relative`` is the place under the folder that was named, later under the output folder.
    """

    path: str
    relative: str
    trouble: str | None = None
    tip: str | None = None
    output: str = ""
    format: str | None = None


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1]


class _Finder:
    """Expands inputs to files, each once: its first mention wins."""

    def __init__(self, output: Path, recursive: bool) -> None:
        from cvcli.codecs import readable

        self.files: list[_File] = []
        self.folders = 0
        self.has_subfolders = False
        self._recursive = recursive
        self._readable = readable
        self._output = identity_of(os.fspath(output))
        self._walked: set[Identity | None] = set()
        self._taken: set[tuple[object, str]] = set()
        self._identify = cache(identity_of)

    def add(self, path: str) -> None:
        if os.path.isdir(path):
            self.folders += 1
            self._walk(path)
            return
        parent, name = os.path.split(path)
        key = self._identify(parent or os.curdir) or os.path.abspath(parent)
        self._take(key, name, _File(path, name, input_trouble(path)))

    def _take(self, folder: object, name: str, file: _File) -> None:
        key = folder, name
        if key not in self._taken:
            self._taken.add(key)
            self.files.append(file)

    def _walk(self, top: str) -> None:
        """A folder's files, by name. A folder that can be reached both directly and through a
        link is read where it really is, so links are followed last."""
        start = len(self.files)
        todo = [(False, "", top)]
        while todo:
            _, relative, folder = heappop(todo)
            identity = identity_of(folder)
            if identity in self._walked or (relative and identity == self._output):
                continue
            self._walked.add(identity)
            for subfolder in self._read_folder(folder, relative, identity):
                heappush(todo, subfolder)
        # NUL sorts before all that a name can hold, so the order is that of whole path parts.
        found = sorted(self.files[start:], key=lambda file: file.relative.replace("/", "\0"))
        self.files[start:] = found

    def _read_folder(
        self, folder: str, relative: str, identity: Identity | None
    ) -> Iterable[tuple[bool, str, str]]:
        try:
            with os.scandir(folder) as scan:
                entries = [entry for entry in scan if not entry.name.startswith(".")]
        except OSError as error:
            self.files.append(_File(folder, relative, reason(error)))
            return
        for entry in entries:
            linked = entry.is_symlink()
            name = f"{relative}/{entry.name}" if relative else entry.name
            if os.path.isdir(entry.path) if linked else entry.is_dir(follow_symlinks=False):
                self.has_subfolders = True
                if self._recursive:
                    yield linked, name, entry.path
            elif self._readable(_suffix(entry.name)):
                regular = entry.is_file(follow_symlinks=False)
                trouble = None if regular else input_trouble(entry.path)
                self._take(identity, entry.name, _File(entry.path, name, trouble))


class _Naming:
    """Output names and encoder formats."""

    def __init__(self, format: str | None) -> None:
        from cvcli.codecs import format_by_name, format_for_suffix, readable, suffix_for_format

        self._format_for: Callable[[str], str | None] = cache(format_for_suffix)
        self._readable = readable
        self._format: str | None = None
        if format is not None:
            self._format = format_by_name(format)
            self._new_suffix = suffix_for_format(self._format)

    def is_image(self, suffix: str) -> bool:
        """Whether a file with this suffix is taken for an image."""
        return self._readable(suffix) or self._format_for(suffix) is not None

    def name_one(self, file: _File, output: str) -> None:
        """The output is this very file, whatever the input is called."""
        file.output, file.relative = output, os.path.basename(output)
        file.format = self._format or self._format_for(_suffix(output))
        own = self._format_for(_suffix(output))
        if own is not None and own != file.format:
            raise UsageError(f"{output}: is named for {own}, but --format asks for {file.format}")
        if file.format is None:
            raise UsageError(
                f"{output}: {_suffix(output)} files can be read, but not written",
                tip="choose another suffix, or give --format",
            )

    def name_all(self, files: Iterable[_File], root: str) -> None:
        """Every output keeps its input's place and name under the folder ``root``."""
        for file in files:
            if file.trouble is None:
                self._name(file, root)

    def _name(self, file: _File, root: str) -> None:
        stem, suffix = os.path.splitext(file.relative)
        own = self._format_for(suffix) if suffix else None
        file.format = self._format or own
        if self._format is None and own is None and self.is_image(suffix):
            file.trouble = f"{suffix} files can be read, but not written"
            file.tip = "give --format to write another one"
        elif own != file.format:
            # "scan.2" is no image suffix: replacing it would make one of "scan.2" and "scan.3".
            suffix = self._new_suffix if self.is_image(suffix) else suffix + self._new_suffix
        file.relative = stem + suffix
        file.output = os.path.join(root, file.relative)


def _nothing_found(inputs: Sequence[Path], finder: _Finder) -> NoInputError:
    names = ", ".join(str(path) for path in inputs[:_SHOWN]) or "no inputs"
    more = f" and {len(inputs) - _SHOWN} more" if len(inputs) > _SHOWN else ""
    tip = "use -r to descend into sub-folders" if finder.has_subfolders else None
    found = _MISSING if finder.files else "no image files found"
    return NoInputError(f"{names}{more}: {found}", tip)


def _is_file_target(output: Path, finder: _Finder, naming: _Naming) -> bool:
    count = len(finder.files)
    if os.path.isdir(output):
        return False
    if not naming.is_image(output.suffix):
        if count == 1 and not finder.folders and not os.path.lexists(output):
            refuse_odd_file(output)
        return False
    if count == 1 and not finder.folders:
        return True
    if os.path.lexists(output):
        return False
    given = f"{count} inputs were given" if count > 1 else "a folder was given"
    raise UsageError(f"{output}: looks like a file, but {given}", tip="name a folder as OUTPUT")


def _fold(name: str) -> str:
    """Equal for names that some file system takes for one: by case, or by composed letters."""
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFC", name).casefold())


def _refuse_collisions(files: Iterable[_File]) -> None:
    writers: dict[str, _File] = {}
    groups: dict[str, list[_File]] = {}
    for file in files:
        if file.trouble is None:
            key = _fold(file.relative)
            first = writers.setdefault(key, file)
            if first is not file:
                groups.setdefault(key, [first]).append(file)
    clashes = list(groups.values())
    if not clashes:
        return _refuse_file_as_folder(writers)
    shown = "; ".join(map(_describe_clash, clashes[:_SHOWN]))
    more = f"; and {len(clashes) - _SHOWN} more such outputs" if len(clashes) > _SHOWN else ""
    raise UsageError(shown + more, tip="give these inputs separate output folders")


def _describe_clash(group: Sequence[_File]) -> str:
    number = "two" if len(group) == 2 else str(len(group))
    names = ", ".join(str(Path(file.path)) for file in group[:_SHOWN])
    more = ", …" if len(group) > _SHOWN else ""
    return f"{Path(group[0].output)}: {number} inputs would write it ({names}{more})"


def _refuse_file_as_folder(writers: dict[str, _File]) -> None:
    """No output may take the name of a folder that holds another output."""
    holds: dict[str, _File] = {}
    for key, file in writers.items():
        folder = os.path.dirname(key)
        while folder and folder not in holds:
            holds[folder] = file
            folder = os.path.dirname(folder)
    for key in writers.keys() & holds.keys():
        one, other = writers[key], holds[key]
        raise UsageError(
            f"{Path(one.output)}: would be a file and a folder ({Path(one.path)}, "
            f"{Path(other.path)})",
            tip="give these inputs separate output folders",
        )


def _look_at_outputs(files: Iterable[_File]) -> dict[int, int]:
    """File modes of the outputs already there, by index; what can't be one gets its trouble."""
    modes: dict[int, int] = {}
    for index, file in enumerate(files):
        if file.trouble is not None:
            file.output = ""
            continue
        try:
            modes[index] = os.lstat(file.output).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            file.trouble = reason(error)
    return modes


def _refuse_inputs_as_outputs(files: Sequence[_File], in_the_way: Iterable[int]) -> None:
    """Only an output that exists can be an input, so a fresh folder costs nothing."""
    outputs = [(files[index].output, identity_of(files[index].output)) for index in in_the_way]
    if not outputs:
        return
    inputs = {identity: file.path for file in files if (identity := identity_of(file.path))}
    for output, identity in outputs:
        if identity in inputs:
            raise UsageError(
                f"{Path(inputs[identity])}: input would be overwritten (by output {Path(output)})",
                tip="choose another output folder",
            )


def _obstacle(mode: int, overwrite: bool) -> str | None:
    if stat.S_ISDIR(mode):
        return "a folder has the output's name"
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return "not a regular file"
    return None if overwrite else "output exists"


def _settle(
    files: Iterable[_File],
    in_the_way: dict[int, int],
    root: Path,
    overwrite: bool,
    skip_existing: bool,
) -> Plan:
    jobs: list[Job] = []
    skipped: list[Job] = []
    problems: list[Problem] = []
    for index, file in enumerate(files):
        source, target = Path(file.path), Path(file.output) if file.output else None
        mode = in_the_way.get(index)
        trouble, tip = file.trouble, file.tip
        if trouble is None and mode is not None:
            trouble = _obstacle(mode, overwrite or skip_existing)
            tip = EXISTS_TIP if trouble == "output exists" else None
        if trouble is not None or target is None:
            problems.append(Problem(source, target, trouble or "no output", tip, index))
        else:
            done = skipped if skip_existing and mode is not None else jobs
            done.append(Job(index, source, target, file.format))
    return Plan(tuple(jobs), tuple(skipped), tuple(problems), root)
