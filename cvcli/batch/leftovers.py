"""Numbered files of a longer run, behind the last one that this run writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, count, takewhile

from cvcli.batch.plan import Job, Plan
from cvcli.batch.storage import storage_of


class Leftovers:
    """Finds them; what the plan that is run writes itself is none."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan.whole or plan

    @cached_property
    def _own(self) -> frozenset[str]:
        # Once, and only if there is something to tell apart: it takes room for every name.
        jobs = chain(self._plan.jobs, self._plan.skipped)
        return frozenset(os.fspath(output) for job in jobs for output in job.outputs)

    def told(self, job: Job) -> list[str]:
        """Return a sentence on the files that seem to go on with a job's outputs, if there are any.

        They stay: that they came from an earlier run is likely, not certain.
        """
        found = takewhile(lambda name: storage_of(name).exists(name), _following(job))
        names = [name for name in found if name not in self._own]
        if not names:
            return []
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        files = "1 file" if len(names) == 1 else f"{len(names)} files"
        return [f"{files} of a longer run left behind its last one: {span}"]


def _following(job: Job) -> Iterator[str]:
    """The names that more pictures would have, as far as the last two tell."""
    if not job.more:
        return
    before, last = (os.fspath(output) for output in job.outputs[-2:])
    number = len(job.more)
    for digits in re.finditer(r"\d+", last):
        head, tail = last[: digits.start()], last[digits.end() :]
        for width in (len(digits[0]), 1):
            if (f"{head}{number - 1:0{width}}{tail}", int(digits[0])) == (before, number):
                yield from (f"{head}{more:0{width}}{tail}" for more in count(number + 1))
                return
