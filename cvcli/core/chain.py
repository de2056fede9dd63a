"""Chains: a tuple of operator steps, planned for an image's spec before a pixel moves.

Steps join the pass before them where that saves memory traffic: moves compose, integer pointwise
steps fold into one table, other steps on samples and pixels run in registers, and a pattern reads
through the moves and steps before it. What a pad's constant meets later is done to it here, with
the kernels' own arithmetic, so that joining changes no byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvcli.core.passes import Lowered, Plan, first_pass
from cvcli.core.spec import ImageSpec

_PLANS_KEPT = 256


@dataclass(frozen=True)
class Step:
    """One operator with its parameters bound; ``lower`` works out what it does to an image."""

    name: str
    params: tuple[tuple[str, Any], ...]
    lower: Callable[[ImageSpec], Lowered] = field(compare=False, repr=False)
    bare: str | None = field(default=None, compare=False, repr=False)
    """The parameter that is spelled without its name."""

    def __str__(self) -> str:
        options = "".join(
            f" {_spelled(value)}"
            if name == self.bare
            else f" --{name.replace('_', '-')} {_spelled(value)}"
            for name, value in sorted(self.params, key=lambda item: item[0] != self.bare)
        )
        return f"{self.name.replace('_', '-')}{options}"


def _spelled(value: object) -> str:
    """Return a parameter as the command line takes it."""
    if isinstance(value, tuple):
        return ",".join(map(_spelled, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def plan_steps(steps: tuple[Step, ...], spec: ImageSpec) -> Plan:
    """Return the passes that run steps on an image of ``spec``."""
    plan = Plan(spec, (first_pass(spec),))
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
        self._plans: dict[ImageSpec, Plan] = {}

    def __eq__(self, other: object) -> bool:
        return self.steps == other.steps if isinstance(other, Chain) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # What was worked out for operands here means nothing elsewhere.
        return Chain, (self.steps, self.origin)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"<cvcli.Chain {self}>" if self.steps else "<cvcli.Chain of no steps>"

    def plan(self, spec: ImageSpec) -> Plan:
        """Return the passes that run the chain on an image of ``spec``; raise `ParameterError`."""
        plan = self._plans.get(spec)
        if plan is None:
            plan = plan_steps(self.steps, spec)
            if len(self._plans) >= _PLANS_KEPT:
                # A list: other threads may change the dictionary while one looks for its first.
                for oldest in [*self._plans][:1]:
                    self._plans.pop(oldest, None)
            self._plans[spec] = plan
        return plan
