"""Numbered files of a longer run, behind the last one that this run writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain, count, takewhile

from cvcli.batch.plan import Job, Plan
from cvcli.batch.storage import storage_of


def left_over(job: Job, plan: Plan | None) -> list[str]:
    """Return a sentence on the files that seem to go on with a job's outputs, if there are any.

    They stay: that they came from an earlier run is likely, not certain. Those of the ``plan``
    that is run are its own.
    """
    names = list(takewhile(lambda name: storage_of(name).exists(name), _following(job)))
    if names and plan is not None:
        jobs = ((plan.whole or plan).jobs, (plan.whole or plan).skipped)
        own = {os.fspath(output) for job in chain(*jobs) for output in job.outputs}
        names = [name for name in names if name not in own]
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
