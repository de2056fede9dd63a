"""Chains that are nothing but flips, quarter turns and crops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from cvcli.core.chain import Chain
from cvcli.core.move import Run
from cvcli.core.passes import Plan, first_pass
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Turn:
    """A rectangle of the source in pixels, mirrored as it lies there, then perhaps transposed."""

    x: int
    y: int
    width: int
    height: int
    flip_x: bool = False
    flip_y: bool = False
    transpose: bool = False

    def result(self, spec: ImageSpec) -> ImageSpec:
        """Return what an image of ``spec`` becomes."""
        size = (self.width, self.height) if self.transpose else (self.height, self.width)
        return replace(spec, height=size[0], width=size[1])


@lru_cache(maxsize=256)
def turn_of(chain: Chain, spec: ImageSpec) -> Turn:
    """Return what a chain does to an image of ``spec``.

    Raises `ParameterError`, which names the first step that is no flip, quarter turn or crop.
    """
    plan = Plan(spec, (first_pass(spec),))
    turn = _turn(plan)
    for step in chain:
        plan = plan.then(step.lower(plan.target), step.name)
        turn = _turn(plan)
        if turn is None:
            raise ParameterError(
                f"{step.name.replace('_', '-')}: is no flip, quarter turn or crop of the image"
            )
    assert turn is not None, "an image as it is needs no turn"
    return turn


def _turn(plan: Plan) -> Turn | None:
    (item, *more) = plan.passes
    if more or not item.is_plain or item.after or item.has_constants:
        return None
    run_x, run_y = item.runs
    if (run_x.end - run_x.begin, run_y.end - run_y.begin) != (len(item.move.x), len(item.move.y)):
        return None
    if item.move.transpose:
        run_x, run_y = run_y, run_x
    return Turn(
        x=_start(run_x),
        y=_start(run_y),
        width=run_x.end,
        height=run_y.end,
        flip_x=run_x.step < 0,
        flip_y=run_y.step < 0,
        transpose=item.move.transpose,
    )


def _start(run: Run) -> int:
    return min(run.source, run.source + run.step * (run.end - 1))
