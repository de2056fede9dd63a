"""What one run will do: every input with the output it becomes, before anything is read.

A plan only looks at names and file status. Whatever would lose a file (two inputs for one output,
an output that is an input) is refused as a whole with `UsageError`; what concerns one file alone
(missing, output exists) becomes a `Problem`, and the other files are still done.
"""

# Paths are strings in here: a Path for each step would take most of the time of a large plan.
# ruff: noqa: PTH114

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cvcli.batch.conflicts import refuse_collisions, refuse_inputs_as_outputs
from cvcli.batch.files import EXISTS_TIP, identity_of, reason, refuse_odd_file
from cvcli.batch.inputs import NO_MATCH, Finder, Found
from cvcli.batch.jobs import Job as Job  # it is a plan's for all who read one
from cvcli.batch.jobs import Jobs
from cvcli.batch.outputs import Naming, Size
from cvcli.batch.pictures import counted
from cvcli.batch.places import Place, Url, place
from cvcli.batch.rules import Rules
from cvcli.batch.storage import Status, Storage, look_ahead, storage_of
from cvcli.errors import NoInputError, UsageError

STDIO = Path("-")
"""Stands for stdin as an input and for stdout as an output."""
Measure = Callable[[Sequence[str], Sequence[int]], "list[list[Size] | str]"]
"""Gives for each path the sizes in pixels of so many results, or why there are none."""
Count = Callable[[Sequence[str]], list[int]]
"""Gives for each path the number of its pictures."""

_SHOWN = 3
_MISSING = reason(FileNotFoundError(errno.ENOENT, ""))


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that fails before it is read.

    ``output`` is given exactly when it is the output, not the input, that is in the way.
    """

    input: Place
    output: Place | None
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

    The indexes of ``jobs``, ``skipped`` and ``problems`` together are 0, 1, … ``len(plan) - 1``,
    but for a part of a plan, which knows the ``whole``.
    """

    jobs: Sequence[Job]
    skipped: Sequence[Job]
    problems: tuple[Problem, ...]
    output_root: Place
    whole: "Plan | None" = None

    def __len__(self) -> int:
        """All files, whatever becomes of them."""
        return len(self.jobs) + len(self.skipped) + len(self.problems)


def make_plan(
    inputs: Sequence[Place],
    output: Place | None,
    *,
    listed: Sequence[str] = (),
    measure: Measure | None = None,
    **wishes: Any,
) -> Plan:
    """Decide what becomes of each input; leaves the disk as it is.

    ``wishes`` are those of `Rules`; ``listed`` are more inputs, which are no patterns. ``output``
    is None for ``in_place``, and `STDIO` for stdout. No file is read but for names that hold a
    size, which are asked of ``measure``, and to count the pictures of one that is to become
    several files.
    """
    rules = Rules(**wishes)
    if isinstance(output, Path) and output != STDIO:
        output = _without_dots(output)
    names = [*map(os.fspath, inputs), *listed]
    _refuse_in_place(names, output)
    look_ahead(names)
    finder = Finder(output, rules)
    for path in inputs:
        finder.add(os.fspath(path))
    for name in listed:
        finder.add(name, literal=True)
    if all(file.trouble in (_MISSING, NO_MATCH) for file in finder.files):
        raise _nothing_found([*inputs, *map(place, listed)], finder)
    files, several = finder.files, finder.several or bool(listed)
    del finder
    return plan_files(files, output, rules, measure, several=several)


def plan_files(
    files: Sequence[Found],
    output: Place | None,
    rules: Rules,
    measure: Measure | None = None,
    count: Count = counted,
    *,
    several: bool = False,
) -> Plan:
    """Decide what becomes of files that were found; ``several`` of them were asked for, even if
    there is only one."""
    naming = Naming(rules.format, rules.name, rules.frame)
    several |= len(files) > 1
    if output is None:
        return _plan_in_place(files, naming, rules)
    if output == STDIO:
        return _plan_for_stdout(files, naming, rules, measure, count, several)
    root = output
    if _is_file_target(output, files, naming, several):
        if rules.name is not None:
            raise UsageError(f"{output}: looks like a file, but --name was given", tip=_FOLDER_TIP)
        splits = naming.may_split(files[0], os.fspath(output))
        pictures = count([files[0].path])[0] if splits else 1
        naming.name_one(files[0], os.fspath(output), pictures)
        root = output.parent
    else:
        _name(files, os.fspath(output), naming, measure, count)
    storage = storage_of(root)
    if trouble := storage.folder_trouble(os.fspath(root)):
        raise UsageError(f"{output}: {trouble}")
    refuse_collisions(files)
    in_the_way = look_at_outputs(files, storage)
    refuse_inputs_as_outputs(files, in_the_way)
    return _settle(files, in_the_way, root, rules)


def _name(
    files: Sequence[Found], root: str, naming: Naming, measure: Measure | None, count: Count
) -> None:
    good = [index for index, file in enumerate(files) if file.trouble is None]
    several = [index for index in good if naming.may_split(files[index])]
    pictures = dict(zip(several, count([files[i].path for i in several]), strict=True))
    counts = [pictures.get(index, 1) for index in good]
    sizes: Iterable[list[Size] | str] = ([(0, 0)] * number for number in counts)
    if naming.sized:
        if measure is None:
            raise UsageError("--name: sizes can't be known here")
        sizes = measure([files[index].path for index in good], counts)
    for index, known in zip(good, sizes, strict=True):
        if isinstance(known, str):
            files[index].trouble = known
        else:
            naming.name(files[index], root, index, known)


def _plan_in_place(files: Sequence[Found], naming: Naming, rules: Rules) -> Plan:
    """Every file is its own output; a link is followed, so that what it points to is replaced."""
    for index, file in enumerate(files):
        if file.trouble is None:
            file.relative = real = os.path.realpath(file.path)
            naming.name(file, "", index)
            file.relative, file.output = real, real if os.path.islink(file.path) else file.path
    refuse_collisions(files)
    plan = _settle(files, look_at_outputs(files, storage_of("")), Path(), rules)
    if rules.backup is None:
        return plan
    jobs = Jobs()
    problems = list(plan.problems)
    for job in plan.jobs:
        backup = f"{job.output}{rules.backup}"
        # A run that died in between left one file under both names: that one is still to be done.
        if os.path.lexists(backup) and identity_of(backup) != identity_of(os.fspath(job.output)):
            problem = Problem(job.input, Path(backup), "backup exists", _BACKUP_TIP, job.index)
            problems.append(problem)
        else:
            jobs.add(job)
    return replace(plan, jobs=jobs, problems=tuple(problems))


_FOLDER_TIP = "name a folder as OUTPUT"
_ONE_TIP = "--frame N takes one of them, a folder as OUTPUT all"
_BACKUP_TIP = "move it away, or choose another suffix with --backup=SUFFIX"


def _plan_for_stdout(
    files: Sequence[Found],
    naming: Naming,
    rules: Rules,
    measure: Measure | None,
    count: Count,
    several: bool,
) -> Plan:
    """One file goes to stdout as it is; a folder, a pattern or several files as a tar."""
    for wish in ("overwrite", "skip_existing", "if_newer", "check"):
        if getattr(rules, wish):
            raise UsageError(f"--{wish.replace('_', '-')}: there are no outputs to look at in -")
    _name(files, "", naming, measure, count)
    if not several:
        if files[0].more:
            pictures = f"its {len(files[0].places)} pictures would be as many files"
            files[0].trouble, files[0].tip = f"{pictures}, and - takes one", _ONE_TIP
        files[0].output, files[0].more = "" if files[0].trouble else os.fspath(STDIO), ()
    else:
        refuse_collisions(files)
    return _settle(files, {}, STDIO, rules)


def _without_dots(output: Path) -> Path:
    """Return where ``new/../in`` leads before ``new`` is made, which is where it leads after."""
    known = os.path.lexists(output) or os.path.lexists(output.parent)
    return output if known or ".." not in output.parts else Path(os.path.realpath(output))


def _refuse_in_place(inputs: Iterable[str], output: Place | None) -> None:
    for path in inputs if output is None else ():
        if isinstance(place(path), Url):
            raise UsageError(f"--in-place: {path} is not on this machine", tip="name an OUTPUT")


def _nothing_found(inputs: Sequence[Place], finder: Finder) -> NoInputError:
    names = ", ".join(str(path) for path in inputs[:_SHOWN]) or "no inputs"
    more = f" and {len(inputs) - _SHOWN} more" if len(inputs) > _SHOWN else ""
    tip = "use -r to descend into sub-folders" if finder.has_subfolders else None
    named = any(file.trouble == _MISSING for file in finder.files)
    found = _MISSING if named else "no image files found"
    return NoInputError(f"{names}{more}: {found}", tip)


def _is_file_target(output: Place, files: Sequence[Found], naming: Naming, several: bool) -> bool:
    storage = storage_of(output)
    if storage.is_folder(output):
        return False
    if not naming.is_image(output.suffix):
        if not several and not storage.exists(output):
            refuse_odd_file(output)
        return False
    if not several:
        return True
    if storage.exists(output):
        return False
    given = f"{len(files)} inputs were given" if len(files) > 1 else "a folder was given"
    raise UsageError(f"{output}: looks like a file, but {given}", tip=_FOLDER_TIP)


def look_at_outputs(files: Sequence[Found], storage: Storage) -> dict[str, Status]:
    """Status of the outputs already there, by name; what can't be one gives its file trouble."""
    found: dict[str, Status] = {}
    for file in files:
        if file.trouble is not None:
            file.output = ""
    statuses = storage.statuses(output for _, output in _wanted(files))
    for (file, output), status in zip(_wanted(files), statuses, strict=True):
        if not isinstance(status, OSError):
            if status is not None:
                found[output] = status
        elif file.trouble is None:
            file.trouble, file.output = reason(status), output
    return found


def _wanted(files: Iterable[Found]) -> Iterator[tuple[Found, str]]:
    good = (file for file in files if file.trouble is None)
    return ((file, output) for file in good for _, output in file.places)


def _obstacle(mode: int, replaced: bool) -> str | None:
    if stat.S_ISDIR(mode):
        return "a folder has the output's name"
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return "not a regular file"
    return None if replaced else "output exists"


def decide(file: Found, there: Mapping[str, Status], rules: Rules) -> bool:
    """Return whether a file is skipped for what is at its outputs; it may get a trouble instead.

    It is skipped only if none of them is missing.
    """
    if file.trouble is not None:
        return False
    left = rules.replaces or rules.skip_existing or rules.check
    skipped = rules.skip_existing or rules.if_newer
    for _, output in file.places:
        status = there.get(output)
        if status is None:
            trouble = "output is missing" if rules.check else None
        else:
            trouble = _obstacle(status.st_mode, left)
        if trouble is not None:
            file.trouble, file.output = trouble, output
            file.tip = EXISTS_TIP if trouble == "output exists" else None
            return False
        skipped &= status is not None and (rules.skip_existing or _is_newer(status, file))
    return skipped


def _is_newer(there: Status, file: Found) -> bool:
    """Return whether an output is known to be at least as new as its input."""
    own = file.mtime_ns
    if own is None:
        own = storage_of(file.path).changed_ns(file.path)
    return own is not None and there.st_mtime_ns is not None and there.st_mtime_ns >= own


def _settle(
    files: Iterable[Found], in_the_way: Mapping[str, Status], root: Place, rules: Rules
) -> Plan:
    jobs, skipped = Jobs(), Jobs()
    problems: list[Problem] = []
    for index, file in enumerate(files):
        skip = root != STDIO and decide(file, in_the_way, rules)
        if file.trouble is not None or not file.output:
            source, target = place(file.path), place(file.output) if file.output else None
            problems.append(Problem(source, target, file.trouble or "no output", file.tip, index))
        else:
            more = tuple(output for _, output in file.more)
            texts = index, file.path, file.output, file.format, more, file.by_suffix
            (skipped if skip else jobs).texts.append(texts)
    jobs.texts.renew()
    return Plan(jobs, skipped, tuple(problems), root)
