"""From plans to launches: argument blocks, and the maps, constants and tables they point to."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from cvcli.core.chain import MapPlan
from cvcli.core.engine import Engine
from cvcli.core.images import Images, Placed
from cvcli.core.memory import Buffer
from cvcli.core.move import Run
from cvcli.core.stream import Stream
from cvcli.devices import Kernel, Launch, params

if TYPE_CHECKING:
    from cvcli.core.move import IndexMap

# What a plan points to is the same for every uniform batch, so it stays on each device.
_RESIDENT: WeakKeyDictionary[MapPlan, dict[str, tuple[Buffer | None, params.Move, int]]]
_RESIDENT = WeakKeyDictionary()


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
    resident, move, table = _resident(engine, plan, stream)
    args = params.MapArgs(
        src=_strided(src), dst=_strided(dst), count=src.count, move=move, table=table or None
    )
    target = plan.target
    launch = _launch(plan, args, src.count, src.count * target.height, [(target, src.count)])
    reads = [src.buffer, *([resident] if resident is not None else [])]
    engine.launch(launch, reads, [dst.buffer], stream)


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
    _upload(engine, buffer, block, stream)
    args = params.MapArgs(
        src=params.Images(list=base + sources),
        dst=params.Images(list=base + targets),
        count=len(work),
        moves=base + moves,
        table=_address(base, table),
    )
    rows = sum(plan.target.height for plan in plans)
    launch = _launch(plans[0], args, len(work), rows, [(plan.target, 1) for plan in plans])
    engine.launch(launch, [src.buffer, buffer], [dst.buffer], stream)


def _launch(
    plan: MapPlan, args: params.MapArgs, count: int, rows: int, targets: Sequence[tuple[Any, int]]
) -> Launch:
    floats = plan.source.dtype == "float32"
    return Launch(
        kernel=kernel_of(plan),
        args=args,
        params=tuple(step.block() for step in plan.pointwise) if floats else (),
        count=count,
        rows=rows,
        height=max(spec.height for spec, _ in targets),
        width=max(spec.width for spec, _ in targets),
        nbytes=2 * sum(spec.nbytes * times for spec, times in targets),
    )


def kernel_of(plan: MapPlan) -> Kernel:
    """Return the kernel that runs a plan."""
    if plan.source.dtype == "float32":
        functors = tuple(step.functor for step in plan.pointwise)
    else:
        functors = ("table",) if plan.pointwise else ()
    pattern = "map_tiles" if plan.move.transpose else "map_rows"
    return Kernel(pattern, plan.source.dtype, plan.source.channels, functors)


def _kernel_key(plan: MapPlan) -> tuple[object, ...]:
    kernel = kernel_of(plan)
    return kernel.pattern, kernel.dtype, kernel.channels, plan.pointwise_key


def _resident(
    engine: Engine, plan: MapPlan, stream: Stream
) -> tuple[Buffer | None, params.Move, int]:
    kept = _RESIDENT.setdefault(plan, {})
    if engine.device.name not in kept:
        block = _Block()
        parts = _Parts(plan, block)
        table = None if plan.table is None else block.add(plan.table.tobytes())
        buffer = engine.allocate(len(block.data)) if block.data else None
        base = buffer.pointer if buffer is not None else 0
        if buffer is not None:
            _upload(engine, buffer, block, stream)
        kept[engine.device.name] = buffer, parts.move(base), _address(base, table) or 0
    return kept[engine.device.name]


def _upload(engine: Engine, buffer: Buffer, block: _Block, stream: Stream) -> None:
    staging = engine.allocate_staging(len(block.data))
    ctypes.memmove(staging.pointer, bytes(block.data), len(block.data))
    engine.copy(buffer, staging, len(block.data), stream)


def _strided(images: Images) -> params.Images:
    return params.Images(first=_image(images.buffer, images.first), stride=images.stride)


def _image(buffer: Buffer, placed: Placed) -> params.Image:
    spec = placed.spec
    return params.Image(buffer.pointer + placed.offset, spec.height, spec.width, placed.row_pitch)


def _image_list(buffer: Buffer, placed: Sequence[Placed]) -> bytes:
    return b"".join(bytes(_image(buffer, item)) for item in placed)
