"""Jobs from a tar that comes through a pipe, while the run already goes on."""

# ruff: noqa: PTH122

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from cvcli.batch.conflicts import Claims
from cvcli.batch.inputs import Found
from cvcli.batch.outputs import Naming, Size
from cvcli.batch.patterns import Filter
from cvcli.batch.pictures import counted_in
from cvcli.batch.places import Place, place
from cvcli.batch.plan import STDIO, Job, Problem, decide, look_at_outputs
from cvcli.batch.report import Report
from cvcli.batch.rules import Rules
from cvcli.batch.sources import Held
from cvcli.batch.storage import storage_of
from cvcli.batch.tar import Member, Prefixed, members
from cvcli.errors import ImageError, NoInputError, UsageError

# Members read ahead of the workers.
_AHEAD_NBYTES = 32 << 20


class Feed:
    """The images of a tar, each with its output below a folder, or for `STDIO` in another tar.

    ``measure`` gives the sizes of so many results, for names that hold them. `UsageError` if the
    outputs can't be written.
    """

    def __init__(
        self,
        stream: Prefixed,
        output: Place,
        rules: Rules,
        measure: Callable[[bytes, int], list[Size] | str],
    ) -> None:
        self.source = Held()
        self.complete = False
        """Whether the whole archive was read."""
        self._stream, self._rules, self._measure = stream, rules, measure
        self._naming = Naming(rules.format, rules.name, rules.frame)
        self._filter = Filter(rules.include, rules.exclude)
        self._claims = Claims()
        self._swept: set[Place] = set()
        self._root = None if output == STDIO else output
        if self._root is not None:
            _refuse_root(self._root, self._naming)

    def jobs(self, report: Report) -> Iterator[Job]:
        """Give the jobs as they come; the report gets a row for each input."""
        try:
            for member in members(self._stream):
                if self._is_meant(member):
                    job = self._job(member, report)
                    if job is not None:
                        yield job
                self.source.wait_for_room(_AHEAD_NBYTES)
        except ImageError as error:
            report.add(Problem(STDIO, None, str(error), error.tip, len(report.rows)))
        else:
            self.complete = True
        if not report.rows:
            raise NoInputError("-: no image files found in the tar")

    def _is_meant(self, member: Member) -> bool:
        from cvcli.codecs import readable, recognised

        parts = member.name.split("/")
        hidden = any(part.startswith(".") and part != os.pardir for part in parts)
        if hidden and not self._rules.hidden:
            return False
        if not self._filter.takes(member.name) or any(
            self._filter.prunes("/".join(parts[:depth])) for depth in range(1, len(parts))
        ):
            return False
        suffix = os.path.splitext(parts[-1])[1]
        sniffed = (self._filter.chooses or not suffix) and recognised(member.data[:32])
        return readable(suffix) or sniffed

    def _job(self, member: Member, report: Report) -> Job | None:
        index = len(report.rows)
        file = Found(member.name, member.name, member.trouble, member.tip)
        file.mtime_ns = member.stamp.mtime_ns
        self._name(file, member, index)
        skipped = file.trouble is None and self._root is not None and self._decide(file)
        if file.trouble is not None:
            output = place(file.output) if file.output else None
            report.add(Problem(Path(file.path), output, file.trouble, file.tip, index))
            return None
        more = tuple(place(output) for _, output in file.more)
        job = Job(index, Path(file.path), place(file.output), file.format, more, file.by_suffix)
        report.add(job, skipped=skipped)
        if skipped:
            return None
        self.source.hold(index, member.data, member.stamp)
        return job

    def _name(self, file: Found, member: Member, index: int) -> None:
        if file.trouble is not None:
            return
        count = counted_in(member.data) if self._naming.may_split(file) else 1
        sizes = self._measure(member.data, count) if self._naming.sized else [(0, 0)] * count
        if isinstance(sizes, str):
            file.trouble = sizes
            return
        self._naming.name(file, os.fspath(self._root or ""), index, sizes)
        if file.trouble is None:
            file.trouble = self._claims.claim([place for place, _ in file.places], file.path)
            file.output = "" if file.trouble else file.output

    def _decide(self, file: Found) -> bool:
        storage = storage_of(file.output)
        for folder in {place(output).parent for _, output in file.places} - self._swept:
            self._swept.add(folder)
            storage.remove_stale(os.fspath(folder))
        there = look_at_outputs([file], storage)
        return decide(file, there, self._rules)


def _refuse_root(root: Place, naming: Naming) -> None:
    storage = storage_of(root)
    if not storage.exists(root) and naming.is_image(root.suffix):
        raise UsageError(
            f"{root}: looks like a file, but a tar was given", tip="name a folder as OUTPUT"
        )
    if trouble := storage.folder_trouble(os.fspath(root)):
        raise UsageError(f"{root}: {trouble}")
