"""Chains: a tuple of operator steps, planned for an image's spec before a pixel moves.

Every step lowers to a `Move` or a `Pointwise`. Whatever their order, they fold into one pass:
moves compose, integer pointwise steps fold into one table, float ones run one after the other on
each sample in registers. A pad's constant that meets later pointwise steps is taken through them
here, with the kernels' own arithmetic, so the fold changes no byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvcli.core import move as moves
from cvcli.core.move import Move
from cvcli.core.pointwise import Pointwise, apply_to_pixels, fold_tables
from cvcli.core.spec import ImageSpec

if TYPE_CHECKING:
    from cvcli.core.pointwise import Table

Lowered = Move | Pointwise
_PLANS_KEPT = 256


@dataclass(frozen=True)
class Step:
    """One operator with its parameters bound; ``lower`` works out what it does to an image."""

    name: str
    params: tuple[tuple[str, Any], ...]
    lower: Callable[[ImageSpec], Lowered] = field(compare=False, repr=False)

    def __str__(self) -> str:
        options = "".join(
            f" --{name.replace('_', '-')} {_spelled(value)}" for name, value in self.params
        )
        return f"{self.name.replace('_', '-')}{options}"


def _spelled(value: object) -> str:
    """Return a parameter as the command line takes it."""
    if isinstance(value, tuple):
        return ",".join(map(_spelled, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class MapPlan:
    """One pass over an image: a gather, then pointwise steps.

    The gather's constants are final values: the pointwise steps don't touch them.
    """

    source: ImageSpec
    target: ImageSpec
    move: Move
    pointwise: tuple[Pointwise, ...]
    label: str
    bound: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    """Kept by whoever runs the plan: what it has put on each device for it."""

    def then(self, lowered: Lowered, label: str) -> MapPlan:
        """Return this pass with one more step folded in."""
        label = f"{self.label} + {label}" if self.label else label
        if isinstance(lowered, Pointwise):
            constants = apply_to_pixels(lowered, self.move.constants)
            move = replace(self.move, constants=constants)
            return replace(self, move=move, pointwise=(*self.pointwise, lowered), label=label)
        move = self.move.then(lowered)
        target = replace(self.target, height=len(move.y), width=len(move.x))
        return replace(self, move=move, target=target, label=label)

    @cached_property
    def table(self) -> Table | None:
        """The folded table of an integer image, if any step is pointwise."""
        if self.source.dtype == "float32" or not self.pointwise:
            return None
        return fold_tables(self.pointwise, self.source.dtype)

    @property
    def pointwise_key(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """What must be equal for two images to share a launch."""
        return tuple((step.functor, step.params) for step in self.pointwise)

    @cached_property
    def has_constants(self) -> bool:
        """Whether any destination pixel is a constant."""
        return bool((self.move.y < 0).any() or (self.move.x < 0).any())

    @cached_property
    def runs(self) -> tuple[moves.Run, moves.Run]:
        """The longest runs of the maps: x, then y."""
        return moves.longest_run(self.move.x), moves.longest_run(self.move.y)


def plan_steps(steps: tuple[Step, ...], spec: ImageSpec) -> MapPlan:
    """Fold steps into one pass over an image of ``spec``."""
    plan = MapPlan(spec, spec, moves.identity(spec), (), "")
    for step in steps:
        plan = plan.then(step.lower(plan.target), step.name)
    return plan


class Chain:
    """An immutable sequence of steps, the same for every image it is run on."""

    def __init__(self, steps: tuple[Step, ...], origin: Path | None = None) -> None:
        self.steps = steps
        self.origin = origin
        """The file it was read from, if it was."""
        self._hash = hash(steps)
        self.bound: dict[object, Any] = {}
        """Kept by whoever runs the chain: what it has worked out for each form of operand."""
        self._plans: dict[ImageSpec, MapPlan] = {}

    def __eq__(self, other: object) -> bool:
        return self.steps == other.steps if isinstance(other, Chain) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))

    def plan(self, spec: ImageSpec) -> MapPlan:
        """Return the pass that runs the chain on an image of ``spec``; raise `ParameterError`."""
        plan = self._plans.get(spec)
        if plan is None:
            plan = plan_steps(self.steps, spec)
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[spec] = plan
        return plan
