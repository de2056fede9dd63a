"""Passes: what one launch reads, computes and writes; and how a further step joins one.

A pass reads each pixel through a gather (`Move`) and the steps ``before``, lets its `Pattern`
compute, and takes each result through the steps ``after`` on its way out. Without a pattern it is
a map: the gather, then the steps ``after``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from ctypes import Structure
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cvcli.core import move as moves
from cvcli.core.move import Move
from cvcli.core.pixelwise import Pixelwise, Sample, fold_samples, result_spec, through
from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block


@dataclass(frozen=True, slots=True)
class Layout:
    """A change of layout: each channel a plane of its own, or pixels side by side."""

    planar: bool


class Part(ABC):
    """Anything a step is made of that adds passes in a way of its own."""

    @abstractmethod
    def extend(self, passes: tuple[Pass, ...], label: str) -> tuple[Pass, ...]:
        """Return passes with this one put behind, or joined to the last one."""


class Pattern(Part):
    """What a pass computes: an access pattern of ``kernels/core/patterns`` with its parameters.

    Made for a ``source`` (what it reads, after the steps before it) and a ``target`` (what it
    gives, before the steps after it). Must not change once made.
    """

    name: ClassVar[str]
    """``kernels/core/patterns/NAME.h``, where the function NAME and the struct NAMEParams are."""
    threads: ClassVar[int] = 256
    blocks: ClassVar[int] = 0
    """Least blocks a multiprocessor should hold, 0 to leave it to the compiler."""
    joins: ClassVar[Literal["nothing", "samples", "all"]] = "all"
    """What may come before it in the same pass: nothing, table lookups, or any gather and step."""

    leads: ClassVar[bool] = True
    """Whether steps can follow it in the same pass."""
    windowed: ClassVar[bool] = False
    """Whether it can make a part of its result only, from ``y0`` and ``x0`` of its frame on."""

    def __init__(self, source: ImageSpec, target: ImageSpec) -> None:
        self.source, self.target = source, target
        self.y0 = self.x0 = 0

    @property
    def template(self) -> tuple[int, ...]:
        """Numbers to compile the kernel for, after the pixel type."""
        return ()

    @property
    def tile(self) -> tuple[int, int]:
        """Width and height in pixels of the part of the result that a block of threads makes."""
        return 32, 8

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of what tiles and bands of rows divide; of the result by default."""
        return self.target.width, self.target.height

    @property
    @abstractmethod
    def key(self) -> tuple[object, ...]:
        """What must be equal for two images to share a launch, apart from sizes."""

    @abstractmethod
    def pack(self, block: Block) -> Callable[[int], Structure]:
        """Add data to a block; return what makes the parameters from the block's address."""

    @property
    def frame(self) -> params.Frame:
        """The first of the parameters."""
        size = self.source.height, self.source.width
        return params.Frame(*size, self.y0, self.x0, self.extent[1])

    def window(self, y: int, x: int, height: int, width: int) -> Pattern | None:
        """Return the pattern that gives a part of the result only, or None if it can't."""
        if not self.windowed:
            return None
        part = copy(self)
        part.y0, part.x0 = self.y0 + y, self.x0 + x
        part.target = replace(self.target, height=height, width=width)
        return part

    def extend(self, passes: tuple[Pass, ...], label: str) -> tuple[Pass, ...]:
        last = passes[-1]
        if last.can_lead(self):
            lead = replace(last, before=last.after, after=(), pattern=self, target=self.target)
            return (*passes[:-1], replace(lead, label=joined(last.label, label)))
        return (*passes, follow(passes, pattern=self, target=self.target, label=label))


@dataclass(frozen=True, eq=False)
class Pass:
    """One launch. The gather's constants are final values of its map, or of ``before``.

    ``reads`` and ``aux`` number the result it takes: 0 is the source, k that of the k-th pass.
    """

    source: ImageSpec
    target: ImageSpec
    move: Move
    before: tuple[Sample, ...] = ()
    pattern: Pattern | None = None
    after: tuple[Sample, ...] = ()
    label: str = ""
    reads: int = 0
    aux: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it gives its source as it is."""
        same = self.source == self.target and not self.after
        return self.pattern is None and same and self.moves_nothing

    @property
    def planar(self) -> tuple[bool, bool]:
        """Whether source and target are planar."""
        return self.source.planar, self.target.planar

    @cached_property
    def is_plain(self) -> bool:
        """Whether it only moves pixels and changes samples: what the map kernels do."""
        kinds = all(isinstance(step, Pointwise) for step in self.after)
        return self.pattern is None and kinds and self.planar == (False, False)

    @cached_property
    def moves_nothing(self) -> bool:
        """Whether every pixel is read at its own place."""
        height, width = len(self.move.y), len(self.move.x)
        whole = (height, width) == (self.source.height, self.source.width)
        runs = moves.Run(0, width, 0, 1), moves.Run(0, height, 0, 1)
        return not self.move.transpose and whole and self.runs == runs

    @cached_property
    def steps(self) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
        """The steps before and after as kernels take them: integer ones folded into tables.

        A map's own are steps before it, as its constants are final values.
        """
        if self.pattern is None:
            return fold_samples(self.after, self.source), ()
        before = fold_samples(self.before, self.source)
        return before, fold_samples(self.after, self.pattern.target)

    @cached_property
    def has_constants(self) -> bool:
        """Whether any pixel read is a constant."""
        return bool((self.move.y < 0).any() or (self.move.x < 0).any())

    @cached_property
    def runs(self) -> tuple[moves.Run, moves.Run]:
        """The longest runs of the maps: x, then y."""
        return moves.longest_run(self.move.x), moves.longest_run(self.move.y)

    def can_lead(self, pattern: Pattern) -> bool:
        """Whether a pattern can read through this map instead of reading its result."""
        if self.pattern is not None or self.move.transpose or True in self.planar:
            return False
        if pattern.joins == "all" or self.is_idle:
            return True
        plain = all(isinstance(step, Pointwise) for step in self.after)
        return pattern.joins == "samples" and self.moves_nothing and plain

    def sampled(self, step: Sample, label: str) -> Pass:
        """Return this pass with a step on its results."""
        move = self.move
        if self.pattern is None:
            move = replace(move, constants=through(step, move.constants))
        target = result_spec(step, self.target)
        after = (*self.after, step)
        return replace(self, move=move, after=after, target=target, label=joined(self.label, label))

    def moved(self, later: Move, label: str) -> Pass | None:
        """Return this pass with a gather of its results, or None if it takes one of its own."""
        target = replace(self.target, height=len(later.y), width=len(later.x))
        changed: dict[str, Any] = {"target": target, "label": joined(self.label, label)}
        if self.pattern is None:
            return replace(self, move=self.move.then(later), **changed)
        window = _window_of(later)
        pattern = self.pattern.window(*window, target.height, target.width) if window else None
        return None if pattern is None else replace(self, pattern=pattern, **changed)


@dataclass(frozen=True, eq=False)
class Plan:
    """The passes that take an image of ``source`` to one of ``target``, in order."""

    source: ImageSpec
    passes: tuple[Pass, ...]
    kept: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    """For whoever runs the plan."""

    @property
    def target(self) -> ImageSpec:
        return self.passes[-1].target

    @property
    def label(self) -> str:
        """The names of the steps; ``+`` joins those of one launch."""
        return " | ".join(filter(None, (item.label for item in self.passes)))

    @cached_property
    def results(self) -> tuple[ImageSpec, ...]:
        """The spec of the source and of what each pass gives."""
        return (self.source, *(item.target for item in self.passes))

    def then(self, lowered: Lowered, label: str) -> Plan:
        """Return the plan with one more step, joined to the last pass where that is possible."""
        passes = self.passes
        for part in lowered if isinstance(lowered, tuple) else (lowered,):
            passes = _extend(passes, part, label)
            label = ""
        return Plan(self.source, passes)


Piece = Move | Pointwise | Pixelwise | Layout | Part
Lowered = Piece | tuple[Piece, ...]


def first_pass(spec: ImageSpec) -> Pass:
    """Return the pass that gives its source as it is."""
    return Pass(spec, spec, moves.identity(spec))


def follow(passes: tuple[Pass, ...], **changed: Any) -> Pass:
    """Return a pass that reads the result of the last one."""
    return replace(first_pass(passes[-1].target), reads=len(passes), **changed)


def joined(first: str, second: str) -> str:
    """Return the label of two steps in one pass."""
    return " + ".join(filter(None, (first, second)))


def _extend(passes: tuple[Pass, ...], part: Piece, label: str) -> tuple[Pass, ...]:
    if isinstance(part, Part):
        return part.extend(passes, label)
    more = _join(passes[-1], part, label)
    if more is not None:
        return (*passes[:-1], more)
    fresh = _join(follow(passes), part, label)
    assert fresh is not None, "a pass that does nothing takes every step"
    return (*passes, fresh)


def _join(last: Pass, part: Move | Sample | Layout, label: str) -> Pass | None:
    """Return a pass with one more step in it, or None where the step needs its own."""
    if isinstance(part, Move):
        # Samples that turn go fast by tiles, which know no other steps.
        turns = part.transpose or last.move.transpose
        return None if turns and not last.is_plain else last.moved(part, label)
    if last.pattern is not None and not last.pattern.leads:
        return None
    if isinstance(part, Layout):
        if last.move.transpose:
            return None
        target = replace(last.target, planar=part.planar)
        return replace(last, target=target, label=joined(last.label, label))
    if isinstance(part, Pixelwise) and last.move.transpose:
        return None
    return last.sampled(part, label)


def _window_of(move: Move) -> tuple[int, int] | None:
    """Return the place of the rectangle that a gather cuts out, if that is all it does."""
    run_x, run_y = moves.longest_run(move.x), moves.longest_run(move.y)
    whole = (run_x.end - run_x.begin, run_y.end - run_y.begin) == (len(move.x), len(move.y))
    forward = run_x.step > 0 and run_y.step > 0
    return (run_y.source, run_x.source) if whole and forward and not move.transpose else None
