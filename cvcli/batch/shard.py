"""``--shard I/N``: the share of a plan that one of several jobs does.

Every job plans the whole, so collisions are refused and names are counted as in one run. A share
is every N-th file, by place in the plan and not by size: files that others have replaced since then
must not move from one share to another, or some would be done twice and some never.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cvcli.batch.jobs import Jobs
from cvcli.batch.places import Place
from cvcli.batch.plan import Job, Plan, Problem
from cvcli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Shard:
    """Share ``number`` of ``count``, from 1; ``files`` of them there are in all.

    ``plan`` is short for all the inputs: jobs that saw the same ones agree in it.
    """

    number: int
    count: int
    files: int = 0
    plan: str = ""

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the share that ``2/8`` names; raise `UsageError` unless 1 <= 2 <= 8."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip(), re.ASCII)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(f"--shard: must be I/N with 1 <= I <= N, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def of(cls, found: Any) -> Shard | None:
        """Return the share that a report's JSON names, None if it names none."""
        try:
            shard = cls(**found)
            whole = all(type(n) is int for n in (shard.number, shard.count, shard.files))
        except TypeError:
            return None
        return shard if whole and 1 <= shard.number <= shard.count else None

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def own_name(self, path: Place) -> Place:
        """Return a report's name with the share in it: jobs have one command and many reports."""
        number = f"{self.number:0{len(str(self.count))}}"
        return path.with_name(f"{path.stem}-{number}-of-{self.count}{path.suffix}")

    def share(self, plan: Plan) -> tuple[Shard, Plan]:
        """Return the share, with what it is of, and its part of a plan."""
        own = replace(self, files=len(plan), plan=_digest(plan))
        return own, replace(
            plan,
            jobs=Jobs(job for job in plan.jobs if self._takes(job)),
            skipped=Jobs(job for job in plan.skipped if self._takes(job)),
            problems=tuple(problem for problem in plan.problems if self._takes(problem)),
            whole=plan,
        )

    def _takes(self, found: Job | Problem) -> bool:
        return found.index % self.count == self.number - 1


def _digest(plan: Plan) -> str:
    every: Iterable[Job | Problem] = (*plan.jobs, *plan.skipped, *plan.problems)
    names = [os.fsencode(found.input) for found in sorted(every, key=lambda found: found.index)]
    return hashlib.sha256(b"\0".join(names)).hexdigest()[:16]
