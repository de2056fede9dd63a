"""Which kernel runs a pass, and the blocks of parameters that it takes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cvcli.core.blocks import Block, address
from cvcli.core.passes import Pass, Pattern
from cvcli.core.patterns.pixels import Pixels
from cvcli.core.pixelwise import TABLE, Pixelwise, Sample, result_spec, typed
from cvcli.core.pointwise import Pointwise, fold_tables
from cvcli.core.spec import ImageSpec
from cvcli.devices import Functor, Kernel, Launch, params


@dataclass(frozen=True, slots=True)
class Packed:
    """A launch's parameters: the lookup table of a map, else the blocks of pattern and steps."""

    table: int | None
    blocks: tuple[bytes, ...]


def pattern_of(item: Pass) -> Pattern:
    """Return the pattern of a pass that is no plain map."""
    return item.pattern or Pixels(item.source, item.target)


def kernel_of(item: Pass, *, uniform: bool) -> Kernel:
    """Return the kernel that runs a pass, on a uniform or a ragged batch."""
    if item.is_plain:
        return _map_kernel(item, uniform=uniform)
    pattern = pattern_of(item)
    before, after = item.steps
    return Kernel(
        pattern.name,
        pattern.source.dtype,
        pattern.source.channels,
        uniform=uniform,
        before=_functors(before, item.source),
        after=_functors(after, pattern.target),
        template=pattern.template,
        moved=not item.moves_nothing,
        planar=item.planar,
        result=item.target.dtype,
        tile=pattern.tile,
        threads=pattern.threads,
        blocks=pattern.blocks,
    )


def _functors(steps: Sequence[Sample], spec: ImageSpec) -> tuple[Functor, ...]:
    return tuple(
        Functor(
            step.functor,
            met.dtype,
            met.channels,
            result_spec(step, met).pixel_nbytes,
            samples=isinstance(step, Pointwise),
        )
        for step, met in typed(steps, spec)
    )


def _map_kernel(item: Pass, *, uniform: bool) -> Kernel:
    if item.source.dtype == "float32":
        functors = tuple(step.functor for step in item.after)
    else:
        functors = (TABLE,) if item.after else ()
    return Kernel(_map_pattern(item), item.source.dtype, item.source.channels, functors, uniform)


def _map_pattern(item: Pass) -> str:
    if item.move.transpose:
        return "map_tiles"
    run_x, _ = item.runs
    if run_x.end - run_x.begin < len(item.move.x) or item.has_constants:
        return "map_rows"
    return "map_forward" if run_x.step > 0 else "map_mirrored"


def blocks_of(
    item: Pass, block: Block, each: Sequence[Pass] | None = None
) -> Callable[[int], Packed]:
    """Add a pass's data to a block; return what packs its parameters from the block's address.

    For a ragged batch ``each`` holds the pass of every image.
    """
    if item.is_plain:
        return _map_blocks(item, block)
    steps = [step for part in item.steps for step in part]
    data = [_data(step, block) for step in steps]
    head = _pattern_block(item, block, each)

    def pack(base: int) -> Packed:
        blocks = [_step_block(step, base, at) for step, at in zip(steps, data, strict=True)]
        return Packed(None, (head(base), *blocks))

    return pack


def _map_blocks(item: Pass, block: Block) -> Callable[[int], Packed]:
    steps = [step for step in item.after if isinstance(step, Pointwise)]
    if item.source.dtype == "float32":
        return lambda base: Packed(None, tuple(step.block() for step in steps))
    table = block.add(fold_tables(steps, item.source.dtype).tobytes()) if steps else None
    return lambda base: Packed(address(base, table), ())


def _data(step: Sample, block: Block) -> int:
    has_data = isinstance(step, Pixelwise) and step.data
    return block.add(step.data) if isinstance(step, Pixelwise) and has_data else 0


def _step_block(step: Sample, base: int, at: int) -> bytes:
    return step.block(base + at) if isinstance(step, Pixelwise) else step.block()


def _pattern_block(item: Pass, block: Block, each: Sequence[Pass] | None) -> Callable[[int], bytes]:
    """Return what makes the kernels' ``Each``: parameters for all images, or a list of them."""
    patterns = [pattern_of(one) for one in (each or (item,))]
    different = {id(pattern): pattern for pattern in patterns}
    packs = {key: pattern.pack(block) for key, pattern in different.items()}
    if each is None:
        return lambda base: bytes(packs[id(patterns[0])](base)) + bytes(8)
    size = ctypes.sizeof(packs[id(patterns[0])](0))
    at = block.reserve(size * len(patterns))

    def pack(base: int) -> bytes:
        packed = {key: bytes(made(base)) for key, made in packs.items()}
        block.fill(at, b"".join(packed[id(pattern)] for pattern in patterns))
        return bytes(size) + (base + at).to_bytes(8, "little")

    return pack


def launch_of(
    same: Sequence[Pass], args: params.MapArgs, packed: Packed, *, uniform: bool
) -> Launch:
    """Return the launch of a pass on a batch; ``same`` holds the pass of every image."""
    if same[0].is_plain:
        extents = [(item.target.width, item.target.height) for item in same]
    else:
        extents = [pattern_of(item).extent for item in same]
    return Launch(
        kernel=kernel_of(same[0], uniform=uniform),
        args=args,
        params=packed.blocks,
        count=args.count,
        rows=sum(height for _, height in extents),
        height=max(height for _, height in extents),
        width=max(width for width, _ in extents),
        nbytes=sum(map(nbytes_of, same)),
    )


def nbytes_of(item: Pass) -> int:
    """Return the bytes that a pass must read and write at least."""
    if item.is_plain:
        return 2 * item.target.nbytes
    return item.source.nbytes + item.target.nbytes
