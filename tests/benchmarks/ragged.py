"""One launch over images of different sizes, timed on the GPU next to a copy of as many bytes."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from cvcli.cli.bench import must_move
from cvcli.core.chain import Chain
from cvcli.core.engine import Engine, engine_of
from cvcli.core.images import Images, pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import Stream
from cvcli.ops import parse_chain

COUNT, _TURNS = 64, 3
# Long enough for the host to work out the argument blocks of all images.
_BUSY, _BUSY_NBYTES = 32, 256 << 20


def specs() -> list[ImageSpec]:
    """Return sizes from 320x240 to 1920x1080, the same every time."""
    rng = random.Random(0)
    return [
        ImageSpec(rng.randint(240, 1080), rng.randint(320, 1920), 3, "uint8") for _ in range(COUNT)
    ]


def time_ragged(
    chains: dict[str, str], repeat: int, device: str = "cuda:0", busy: int = _BUSY_NBYTES
) -> dict[str, dict[str, float]]:
    """Return microseconds of each chain, of a copy, and of the host's work on a launch."""
    engine, stream = engine_of(device), Stream(device)
    return {
        name: _time(engine, stream, parse_chain(text), repeat, busy)
        for name, text in chains.items()
    }


def _time(engine: Engine, stream: Stream, chain: Chain, repeat: int, busy: int) -> dict[str, float]:
    sources = [_room(engine, specs()) for _ in range(_TURNS)]
    plans = [chain.plan(spec) for spec in specs()]
    target = _room(engine, [plan.target for plan in plans])
    blocks = [engine.allocate(busy) for _ in range(2)]
    copied = _copied(plans)
    us: list[tuple[float, ...]] = []
    for turn in range(-3, repeat):
        for _ in range(_BUSY):
            engine.copy(blocks[0], blocks[1], busy, stream)
        events = [stream.record(timing=True)]
        begin = time.perf_counter()
        run_plans(engine, sources[turn % _TURNS], target, plans, stream)
        host = (time.perf_counter() - begin) * 1e6
        events.append(stream.record(timing=True))
        engine.copy(target.buffer, sources[(turn + 2) % _TURNS].buffer, copied, stream)
        events.append(stream.record(timing=True))
        stream.sync()
        us.append((*(b.elapsed(a) * 1e3 for a, b in pairwise(events)), host))
    middle = map(median, zip(*us[3:], strict=True))
    return dict(zip(("us", "copy_us", "host_us"), middle, strict=True))


def _room(engine: Engine, images: Sequence[ImageSpec]) -> Images:
    return pack(engine.allocate(packed_nbytes(images)), images)


def _copied(plans: Sequence[Plan]) -> int:
    return sum(map(must_move, plans)) // 2
