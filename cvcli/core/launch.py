"""From plans to launches: argument blocks, intermediate images, and uniform or ragged batches."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from cvcli.core.blocks import Block, Gather
from cvcli.core.engine import Engine
from cvcli.core.images import Images, Placed
from cvcli.core.kernels import blocks_of, kernel_of, launch_of, pattern_of
from cvcli.core.memory import Buffer
from cvcli.core.passes import Pass, Plan
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import Stream
from cvcli.devices import params

_ROW_ALIGNMENT = 16
Operand = tuple[Buffer, int]
_BOUND_KEPT = 64


class BoundPass:
    """A pass bound to a device and to the geometry of uniform batches; pointers are missing.

    What the pass points to stays on the device.
    """

    __slots__ = ("_launch", "_pointers", "engine", "resident")

    def __init__(self, engine: Engine, item: Pass, operands: Sequence[Images], stream: Stream):
        block = Block()
        gather, pack = Gather(item, block), blocks_of(item, block)
        src, dst, *aux = operands
        self.engine, self.resident = engine, None
        if block.data:
            self.resident = engine.allocate(len(block.data))
            block.upload(engine, self.resident, stream)
        base = self.resident.pointer if self.resident is not None else 0
        args = params.MapArgs(
            src=_strided(src),
            dst=_strided(dst),
            count=src.count,
            move=gather.move(base),
            aux=_strided(aux[0]) if aux else params.Images(),
        )
        packed = pack(base)
        args.table = packed.table
        self._launch = launch_of([item] * src.count, args, packed, uniform=True)
        self._pointers = memoryview(args).cast("B").cast("Q")

    def run(self, src: Buffer, dst: Buffer, at_src: int, at_dst: int, stream: Stream) -> None:
        """Queue the launch on two batches at their pointers."""
        engine, pointers, resident = self.engine, self._pointers, self.resident
        reads = (src,) if resident is None else (src, resident)
        with engine.lock:
            pointers[_AT_SRC] = at_src
            pointers[_AT_DST] = at_dst
            engine.launch(self._launch, reads, (dst,), stream)

    def run_with(self, operands: Sequence[Operand], stream: Stream) -> None:
        """Queue the launch on a source, a result and a second source."""
        (src, at_src), (dst, at_dst), *aux = operands
        reads = [src] if self.resident is None else [src, self.resident]
        with self.engine.lock:
            self._pointers[_AT_SRC], self._pointers[_AT_DST] = at_src, at_dst
            for buffer, pointer in aux:
                self._pointers[_AT_AUX] = pointer
                reads.append(buffer)
            self.engine.launch(self._launch, reads, (dst,), stream)


_AT_SRC = params.MapArgs.src.offset // 8
_AT_DST = params.MapArgs.dst.offset // 8
_AT_AUX = params.MapArgs.aux.offset // 8


class Bound:
    """A plan bound to a device and to the geometry of two uniform batches."""

    __slots__ = ("_items", "_passes", "_sizes", "engine")

    def __init__(
        self, engine: Engine, plan: Plan, src: Images, dst: Images, stream: Stream
    ) -> None:
        self.engine, self._passes = engine, plan.passes
        between = [spaced(src.buffer, [item.target] * src.count) for item in plan.passes[:-1]]
        self._sizes = [nbytes for _, nbytes in between]
        results = [src, *(images for images, _ in between), dst]
        self._items = [
            BoundPass(engine, item, _operands(item, i, results), stream)
            for i, item in enumerate(plan.passes)
        ]

    def run(self, src: Buffer, dst: Buffer, at_src: int, at_dst: int, stream: Stream) -> None:
        """Queue the launches on two batches at their pointers."""
        between = [self.engine.allocate(nbytes) for nbytes in self._sizes]
        results = [(src, at_src), *((buffer, buffer.pointer) for buffer in between), (dst, at_dst)]
        for number, (item, bound) in enumerate(zip(self._passes, self._items, strict=True)):
            bound.run_with(_operands(item, number, results), stream)


def bind(engine: Engine, plan: Plan, src: Images, dst: Images, stream: Stream) -> Bound | BoundPass:
    """Bind a plan to a device and to the geometry of two uniform batches."""
    if len(plan.passes) > 1:
        return Bound(engine, plan, src, dst, stream)
    return BoundPass(engine, plan.passes[0], (src, dst), stream)


_T = TypeVar("_T")


def _operands(item: Pass, number: int, results: Sequence[_T]) -> list[_T]:
    """Pick a pass's source, result and second source out of the plan's results."""
    aux = [] if item.aux is None else [results[item.aux]]
    return [results[item.reads], results[number + 1], *aux]


def spaced(buffer: Buffer, specs: Sequence[ImageSpec]) -> tuple[Images, int]:
    """Place intermediate images, their rows aligned; return them and the bytes they take."""
    placed, at = [], 0
    for spec in specs:
        pitch = -(-spec.row_nbytes // _ROW_ALIGNMENT) * _ROW_ALIGNMENT
        placed.append(Placed(spec, at, pitch))
        at += pitch * spec.height * (spec.channels if spec.planar else 1)
    if len(set(specs)) == 1:
        return Images(buffer, placed[0], len(placed), at // len(placed)), at
    return Images(buffer, placed[0], len(placed), 0, tuple(placed)), at


def run_plans(
    engine: Engine, src: Images, dst: Images, plans: Sequence[Plan], stream: Stream
) -> None:
    """Queue the launches that take each image of ``src`` to ``dst`` by its plan.

    ``plans`` holds one plan an image, or a single one for all of them. Images whose plans need
    the same kernels share launches, whatever their sizes.
    """
    if src.ragged is None and len(set(map(id, plans))) == 1:
        _run_uniform(engine, src, dst, plans[0], stream)
        return
    work = [_Item(*item) for item in zip(src.placed(), dst.placed(), plans, strict=True)]
    keys: dict[object, int] = {}
    numbered = [(keys.setdefault(_launch_key(item.plan), len(keys)), item) for item in work]
    numbered.sort(key=lambda pair: pair[0])
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        _run_ragged(engine, src, dst, [item for _, item in group], stream)


@dataclass(frozen=True, slots=True)
class _Item:
    """One image of a ragged batch."""

    src: Placed
    dst: Placed
    plan: Plan


def _launch_key(plan: Plan) -> tuple[object, ...]:
    """Return what is equal for images that can share launches."""
    key: tuple[object, ...] | None = plan.kept.get("key")
    if key is None:
        key = plan.kept["key"] = tuple(map(_pass_key, plan.passes))
    return key


def _pass_key(item: Pass) -> tuple[object, ...]:
    pattern = () if item.is_plain else pattern_of(item).key
    return kernel_of(item, uniform=False), item.before, item.after, pattern, item.reads, item.aux


def _run_uniform(engine: Engine, src: Images, dst: Images, plan: Plan, stream: Stream) -> None:
    steps = src.stride, src.first.row_pitch, dst.stride, dst.first.row_pitch
    key = engine.device.name, src.count, *steps
    bound = plan.kept.get(key)
    if bound is None:
        if len(plan.kept) >= _BOUND_KEPT:
            plan.kept.clear()
        bound = plan.kept[key] = bind(engine, plan, src, dst, stream)
    at_src = src.buffer.pointer + src.first.offset
    at_dst = dst.buffer.pointer + dst.first.offset
    bound.run(src.buffer, dst.buffer, at_src, at_dst, stream)


def _run_ragged(
    engine: Engine, src: Images, dst: Images, work: Sequence[_Item], stream: Stream
) -> None:
    results: list[tuple[Buffer, Sequence[Placed]]] = [(src.buffer, [item.src for item in work])]
    passes = [item.plan.passes for item in work]
    for same in list(zip(*passes, strict=True))[:-1]:
        images, nbytes = spaced(src.buffer, [item.target for item in same])
        results.append((engine.allocate(nbytes), images.placed()))
    results.append((dst.buffer, [item.dst for item in work]))
    for number, same in enumerate(zip(*passes, strict=True)):
        _launch_ragged(engine, same, _operands(same[0], number, results), stream)


def _launch_ragged(
    engine: Engine,
    same: Sequence[Pass],
    operands: Sequence[tuple[Buffer, Sequence[Placed]]],
    stream: Stream,
) -> None:
    block = Block()
    lists = [block.add(_image_list(*operand)) for operand in operands]
    gathers = {item: Gather(item, block) for item in same}
    moves = block.reserve(ctypes.sizeof(params.Move) * len(same))
    pack = blocks_of(same[0], block, same)
    buffer = engine.allocate(len(block.data))
    base = buffer.pointer
    block.fill(moves, b"".join(bytes(gathers[item].move(base)) for item in same))
    packed = pack(base)
    block.upload(engine, buffer, stream)
    sources = [params.Images(list=base + offset) for offset in lists]
    args = params.MapArgs(
        src=sources[0],
        dst=sources[1],
        count=len(same),
        moves=base + moves,
        table=packed.table,
        aux=sources[2] if len(sources) > 2 else params.Images(),
    )
    launch = launch_of(same, args, packed, uniform=False)
    (read, _), (written, _), *aux = operands
    engine.launch(launch, [read, buffer, *(room for room, _ in aux)], [written], stream)


def _strided(images: Images) -> params.Images:
    return params.Images(first=_image(images.buffer, images.first), stride=images.stride)


def _image(buffer: Buffer, placed: Placed) -> params.Image:
    spec = placed.spec
    return params.Image(buffer.pointer + placed.offset, spec.height, spec.width, placed.row_pitch)


def _image_list(buffer: Buffer, placed: Sequence[Placed]) -> bytes:
    return b"".join(bytes(_image(buffer, item)) for item in placed)
