"""What a plan does, launch by launch: the steps of each and the bytes that it moves."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.core.chain import Chain
from cvcli.core.passes import Pass, Plan
from cvcli.core.spec import ImageSpec


@dataclass(frozen=True, slots=True)
class Explained:
    """One launch: its steps, what it reads and gives, and the bytes of both for one image."""

    steps: str
    source: ImageSpec
    target: ImageSpec
    reads: int
    writes: int


def explain(plan: Plan) -> list[Explained]:
    """Return the launches that run a plan, in order."""
    return [_explained(item, plan) for item in plan.passes]


def _explained(item: Pass, plan: Plan) -> Explained:
    aux = plan.results[item.aux].nbytes if item.aux is not None else 0
    steps = item.label or (item.pattern.name if item.pattern is not None else "copy")
    return Explained(steps, item.source, item.target, item.source.nbytes + aux, item.target.nbytes)


def moved(plan: Plan) -> int:
    """Return the bytes that all launches of a plan read and write, for one image."""
    return sum(part.reads + part.writes for part in explain(plan))


def moved_one_by_one(chain: Chain, spec: ImageSpec) -> int:
    """Return what the chain's steps would move if each ran by itself."""
    total = 0
    for step in chain:
        plan = Chain((step,)).plan(spec)
        total += moved(plan)
        spec = plan.target
    return total
