"""What one run will do: every input with the output it becomes, before anything is read.

A plan only looks at names and file status. Whatever would lose a file (two inputs for one output,
an output that is an input) is refused as a whole with `UsageError`; what concerns one file alone
(missing, output exists) becomes a `Problem`, and the other files are still done.
"""

# Paths are strings in here: a Path for each step would take most of the time of a large plan.
# ruff: noqa: PTH112, PTH114, PTH116

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cvcli.batch.conflicts import refuse_collisions, refuse_inputs_as_outputs
from cvcli.batch.files import EXISTS_TIP, folder_trouble, identity_of, reason, refuse_odd_file
from cvcli.batch.inputs import NO_MATCH, Finder, Found
from cvcli.batch.outputs import Naming, Size
from cvcli.batch.pictures import counted
from cvcli.batch.rules import Rules
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
class Job:
    """One image to do. ``index`` is its place among all files of the plan.

    ``format`` names the encoder where the output's suffix or ``--format`` settles it; None stands
    for the input's own format, known once its content is seen. ``more`` are the outputs of the
    pictures behind the first, where each has its own.
    """

    index: int
    input: Path
    output: Path
    format: str | None
    more: tuple[Path, ...] = ()

    @property
    def outputs(self) -> tuple[Path, ...]:
        """All outputs, most often one."""
        return (self.output, *self.more)


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
    output: Path | None,
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
    if output is not None and output != STDIO:
        output = _without_dots(output)
    finder = Finder(output, rules)
    for path in inputs:
        finder.add(os.fspath(path))
    for name in listed:
        finder.add(name, literal=True)
    if all(file.trouble in (_MISSING, NO_MATCH) for file in finder.files):
        raise _nothing_found([*inputs, *map(Path, listed)], finder)
    several = finder.several or bool(listed)
    return plan_files(finder.files, output, rules, measure, several=several)


def plan_files(
    files: Sequence[Found],
    output: Path | None,
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
    if trouble := folder_trouble(os.fspath(root)):
        raise UsageError(f"{output}: {trouble}")
    refuse_collisions(files)
    in_the_way = _look_at_outputs(files)
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
            naming.name(file, "", index)
            file.relative = os.path.realpath(file.path)
            file.output = file.relative if os.path.islink(file.path) else file.path
    refuse_collisions(files)
    plan = _settle(files, _look_at_outputs(files), Path(), rules)
    if rules.backup is None:
        return plan
    jobs: list[Job] = []
    problems = list(plan.problems)
    for job in plan.jobs:
        backup = f"{job.output}{rules.backup}"
        # A run that died in between left one file under both names: that one is still to be done.
        if os.path.lexists(backup) and identity_of(backup) != identity_of(os.fspath(job.output)):
            problem = Problem(job.input, Path(backup), "backup exists", _BACKUP_TIP, job.index)
            problems.append(problem)
        else:
            jobs.append(job)
    return replace(plan, jobs=tuple(jobs), problems=tuple(problems))


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


def _nothing_found(inputs: Sequence[Path], finder: Finder) -> NoInputError:
    names = ", ".join(str(path) for path in inputs[:_SHOWN]) or "no inputs"
    more = f" and {len(inputs) - _SHOWN} more" if len(inputs) > _SHOWN else ""
    tip = "use -r to descend into sub-folders" if finder.has_subfolders else None
    named = any(file.trouble == _MISSING for file in finder.files)
    found = _MISSING if named else "no image files found"
    return NoInputError(f"{names}{more}: {found}", tip)


def _is_file_target(output: Path, files: Sequence[Found], naming: Naming, several: bool) -> bool:
    if os.path.isdir(output):
        return False
    if not naming.is_image(output.suffix):
        if not several and not os.path.lexists(output):
            refuse_odd_file(output)
        return False
    if not several:
        return True
    if os.path.lexists(output):
        return False
    given = f"{len(files)} inputs were given" if len(files) > 1 else "a folder was given"
    raise UsageError(f"{output}: looks like a file, but {given}", tip=_FOLDER_TIP)


def _look_at_outputs(files: Iterable[Found]) -> dict[str, os.stat_result]:
    """Status of the outputs already there, by name; what can't be one gives its file trouble."""
    found: dict[str, os.stat_result] = {}
    for file in files:
        if file.trouble is not None:
            file.output = ""
        else:
            look_at(file, found)
    return found


def look_at(file: Found, found: dict[str, os.stat_result]) -> None:
    """Note the status of the outputs of a file that are there; it may get a trouble."""
    for _, output in file.places:
        try:
            found[output] = os.lstat(output)
        except FileNotFoundError:
            continue
        except OSError as error:
            file.trouble, file.output = reason(error), output
            return


def _obstacle(mode: int, replaced: bool) -> str | None:
    if stat.S_ISDIR(mode):
        return "a folder has the output's name"
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        return "not a regular file"
    return None if replaced else "output exists"


def decide(file: Found, there: Mapping[str, os.stat_result], rules: Rules) -> bool:
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


def _is_newer(there: os.stat_result, file: Found) -> bool:
    """Return whether an output is at least as new as its input."""
    try:
        own = file.mtime_ns if file.mtime_ns is not None else os.stat(file.path).st_mtime_ns
        return there.st_mtime_ns >= own
    except OSError:
        return False


def _settle(
    files: Iterable[Found], in_the_way: Mapping[str, os.stat_result], root: Path, rules: Rules
) -> Plan:
    jobs: list[Job] = []
    skipped: list[Job] = []
    problems: list[Problem] = []
    for index, file in enumerate(files):
        skip = root != STDIO and decide(file, in_the_way, rules)
        source, target = Path(file.path), Path(file.output) if file.output else None
        if file.trouble is not None or target is None:
            problems.append(Problem(source, target, file.trouble or "no output", file.tip, index))
        else:
            more = tuple(Path(output) for _, output in file.more)
            (skipped if skip else jobs).append(Job(index, source, target, file.format, more))
    return Plan(tuple(jobs), tuple(skipped), tuple(problems), root)
