"""From plans to launches: argument blocks, and the maps, constants and tables they point to."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from cvcli.core.chain import MapPlan
from cvcli.core.engine import Engine
from cvcli.core.images import Images, Placed
from cvcli.core.memory import Buffer
from cvcli.core.move import Run
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import Stream
from cvcli.devices import Kernel, Launch, params

if TYPE_CHECKING:
    from cvcli.core.move import IndexMap


class _Block:
    """Bytes to be put on a device in one copy; addresses are known once it has its buffer."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, raw: bytes) -> int:
        """Append bytes, 16-byte aligned; return their offset."""
        self.data.extend(b"\0" * (-len(self.data) % 16))
        offset = len(self.data)
        self.data.extend(raw)
        return offset

    def upload(self, engine: Engine, buffer: Buffer, stream: Stream) -> None:
        staging = engine.allocate_staging(len(self.data))
        ctypes.memmove(staging.pointer, bytes(self.data), len(self.data))
        engine.copy(buffer, staging, len(self.data), stream)


class _Parts:
    """The offsets in a block of one plan's maps, constants and table; None where not needed."""

    def __init__(self, plan: MapPlan, block: _Block) -> None:
        self.plan = plan
        run_x, run_y = plan.runs
        self.x = _add_map(block, plan.move.x, run_x)
        self.y = _add_map(block, plan.move.y, run_y)
        constants = plan.move.constants
        self.constants = block.add(constants.tobytes()) if len(constants) else None

    def move(self, base: int) -> params.Move:
        run_x, run_y = self.plan.runs
        return params.Move(
            x=params.Axis(_address(base, self.x), *run_x),
            y=params.Axis(_address(base, self.y), *run_y),
            constants=_address(base, self.constants),
            transpose=int(self.plan.move.transpose),
        )


def _add_map(block: _Block, index: IndexMap, run: Run) -> int | None:
    whole = run.end - run.begin == len(index)
    return None if whole else block.add(index.tobytes())


def _address(base: int, offset: int | None) -> int | None:
    return None if offset is None else base + offset


class Bound:
    """A plan bound to a device and to the geometry of two uniform batches; pointers are missing.

    What the plan points to stays on the device.
    """

    __slots__ = ("_launch", "_pointers", "engine", "resident")

    def __init__(
        self, engine: Engine, plan: MapPlan, src: Images, dst: Images, stream: Stream
    ) -> None:
        block = _Block()
        parts = _Parts(plan, block)
        table = None if plan.table is None else block.add(plan.table.tobytes())
        self.engine, self.resident = engine, None
        if block.data:
            self.resident = engine.allocate(len(block.data))
            block.upload(engine, self.resident, stream)
        base = self.resident.pointer if self.resident is not None else 0
        args = params.MapArgs(
            src=_strided(src),
            dst=_strided(dst),
            count=src.count,
            move=parts.move(base),
            table=_address(base, table),
        )
        rows, nbytes = src.count * plan.target.height, 2 * src.count * plan.target.nbytes
        self._launch = _launch(plan, args, rows, [plan.target], nbytes, uniform=True)
        self._pointers = memoryview(args).cast("B").cast("Q")

    def run(self, src: Buffer, dst: Buffer, at_src: int, at_dst: int, stream: Stream) -> None:
        """Queue the launch on two batches at their pointers."""
        resident, pointers = self.resident, self._pointers
        with self.engine.lock:
            pointers[_AT_SRC], pointers[_AT_DST] = at_src, at_dst
            reads = (src,) if resident is None else (src, resident)
            self.engine.launch(self._launch, reads, (dst,), stream)


_AT_SRC = params.MapArgs.src.offset // 8
_AT_DST = params.MapArgs.dst.offset // 8


_BOUND_KEPT = 64


def run_plans(
    engine: Engine, src: Images, dst: Images, plans: Sequence[MapPlan], stream: Stream
) -> None:
    """Queue the launches that take each image of ``src`` to ``dst`` by its plan.

    ``plans`` holds one plan an image, or a single one for all of them. Images whose plans need
    the same kernel share a launch, whatever their sizes.
    """
    if src.ragged is None and len(set(map(id, plans))) == 1:
        _run_uniform(engine, src, dst, plans[0], stream)
        return
    work = list(zip(src.placed(), dst.placed(), plans, strict=True))
    work.sort(key=lambda item: _kernel_key(item[2]))
    for _, group in groupby(work, key=lambda item: _kernel_key(item[2])):
        _run_ragged(engine, src, dst, list(group), stream)


def _run_uniform(engine: Engine, src: Images, dst: Images, plan: MapPlan, stream: Stream) -> None:
    steps = src.stride, src.first.row_pitch, dst.stride, dst.first.row_pitch
    key = engine.device.name, src.count, *steps
    bound = plan.bound.get(key)
    if bound is None:
        if len(plan.bound) >= _BOUND_KEPT:
            plan.bound.clear()
        bound = plan.bound[key] = Bound(engine, plan, src, dst, stream)
    at_src = src.buffer.pointer + src.first.offset
    at_dst = dst.buffer.pointer + dst.first.offset
    bound.run(src.buffer, dst.buffer, at_src, at_dst, stream)


def _run_ragged(
    engine: Engine,
    src: Images,
    dst: Images,
    work: Sequence[tuple[Placed, Placed, MapPlan]],
    stream: Stream,
) -> None:
    plans = [plan for _, _, plan in work]
    block = _Block()
    sources = block.add(_image_list(src.buffer, [placed for placed, _, _ in work]))
    targets = block.add(_image_list(dst.buffer, [placed for _, placed, _ in work]))
    parts = {plan: _Parts(plan, block) for plan in plans}
    table = None if plans[0].table is None else block.add(plans[0].table.tobytes())
    moves = block.add(bytes(ctypes.sizeof(params.Move) * len(work)))
    buffer = engine.allocate(len(block.data))
    base = buffer.pointer
    packed = b"".join(bytes(parts[plan].move(base)) for plan in plans)
    block.data[moves : moves + len(packed)] = packed
    block.upload(engine, buffer, stream)
    args = params.MapArgs(
        src=params.Images(list=base + sources),
        dst=params.Images(list=base + targets),
        count=len(work),
        moves=base + moves,
        table=_address(base, table),
    )
    specs = [plan.target for plan in plans]
    nbytes = 2 * sum(spec.nbytes for spec in specs)
    rows = sum(spec.height for spec in specs)
    launch = _launch(plans[0], args, rows, specs, nbytes, uniform=False)
    engine.launch(launch, [src.buffer, buffer], [dst.buffer], stream)


def _launch(
    plan: MapPlan,
    args: params.MapArgs,
    rows: int,
    targets: Sequence[ImageSpec],
    nbytes: int,
    *,
    uniform: bool,
) -> Launch:
    floats = plan.source.dtype == "float32"
    return Launch(
        kernel=kernel_of(plan, uniform=uniform),
        args=args,
        params=tuple(step.block() for step in plan.pointwise) if floats else (),
        count=args.count,
        rows=rows,
        height=max(spec.height for spec in targets),
        width=max(spec.width for spec in targets),
        nbytes=nbytes,
    )


def kernel_of(plan: MapPlan, *, uniform: bool) -> Kernel:
    """Return the kernel that runs a plan, on a uniform or a ragged batch."""
    if plan.source.dtype == "float32":
        functors = tuple(step.functor for step in plan.pointwise)
    else:
        functors = ("table",) if plan.pointwise else ()
    return Kernel(_pattern(plan), plan.source.dtype, plan.source.channels, functors, uniform)


def _pattern(plan: MapPlan) -> str:
    if plan.move.transpose:
        return "map_tiles"
    run_x, _ = plan.runs
    if run_x.end - run_x.begin < len(plan.move.x) or plan.has_constants:
        return "map_rows"
    return "map_forward" if run_x.step > 0 else "map_mirrored"


def _kernel_key(plan: MapPlan) -> tuple[object, ...]:
    kernel = kernel_of(plan, uniform=False)
    return kernel.pattern, kernel.dtype, kernel.channels, plan.pointwise_key


def _strided(images: Images) -> params.Images:
    return params.Images(first=_image(images.buffer, images.first), stride=images.stride)


def _image(buffer: Buffer, placed: Placed) -> params.Image:
    spec = placed.spec
    return params.Image(buffer.pointer + placed.offset, spec.height, spec.width, placed.row_pitch)


def _image_list(buffer: Buffer, placed: Sequence[Placed]) -> bytes:
    return b"".join(bytes(_image(buffer, item)) for item in placed)
