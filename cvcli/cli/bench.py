"""``cvcli bench``: what the operators take, next to a plain copy of as many bytes.

How it is timed: events before and after one launch, on a stream that a copy ahead keeps busy
until all is queued, so what the host takes is not in it; inputs in rotation, so that caches hold
none of them; operator and copy in turn, so that both meet the same machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvcli.cli.bench_host import HEAD, HostRow, cells, measure_host
from cvcli.cli.console import emit
from cvcli.cli.tables import print_table
from cvcli.errors import EXIT_FAILED, EXIT_OK, CvcliError, UsageError

if TYPE_CHECKING:
    from cvcli.core.chain import Chain
    from cvcli.core.passes import Plan
    from cvcli.core.spec import ImageSpec
    from cvcli.core.stream import Event, Stream
    from cvcli.core.tensor import Tensor
    from cvcli.ops import Operator

SCHEMA_VERSION = 1
_WARM_UP = 3
# More than the last cache of most processors and of every GPU so far.
_ROTATED_NBYTES = 256 << 20
_ROTATED = range(3, 17)
# So many copies of so many bytes outlast the host's work on one repetition.
_AHEAD, _AHEAD_NBYTES = 4, {"cpu": 4 << 20, "cuda": 128 << 20}


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle half of some timings, in microseconds."""

    median: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """How wide the middle half is, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One operator or chain on one dtype.

    ``nbytes`` is what a launch must read and write; ``copy_us`` the time of a copy that reads and
    writes as much; ``host_us`` what the call takes on the host. Times are in microseconds.
    """

    operator: str
    dtype: str
    channels: int
    us: Spread
    nbytes: int
    copy_us: Spread
    host_us: float

    @property
    def gb_per_s(self) -> float:
        """Bytes read and written over time, in units of 10^9 a second."""
        return self.nbytes / self.us.median / 1e3

    @property
    def ratio(self) -> float:
        """Time over the time of the copy."""
        return self.us.median / self.copy_us.median

    def as_json(self) -> dict[str, Any]:
        derived = {"gb_per_s": self.gb_per_s, "ratio_to_copy": self.ratio}
        return asdict(self) | derived


class Inputs:
    """Batches of noise on a device, and room for what comes out.

    ``count`` images a batch; ``batches`` are the ones to take in turn.
    """

    def __init__(self, device: str, spec: ImageSpec, count: int) -> None:
        from cvcli.core.engine import engine_of
        from cvcli.core.stream import Stream

        self.engine, self.spec, self.count = engine_of(device), spec, count
        self.stream = Stream(device)
        nbytes = count * spec.nbytes
        wanted = -(-_ROTATED_NBYTES // nbytes)
        turns = min(max(wanted, _ROTATED.start), _ROTATED.stop - 1)
        ahead = _AHEAD_NBYTES[self.engine.device.kind]
        self.batches = [self._noise(seed) for seed in range(turns)]
        self._ahead = [self.engine.allocate(ahead) for _ in range(2)]

    def _noise(self, seed: int) -> Tensor:
        import numpy as np

        from cvcli.core.interop import as_tensor

        rng, spec = np.random.default_rng(seed), self.spec
        shape = (self.count, *spec.shape)
        if spec.dtype == "float32":
            noise = rng.random(shape, dtype=np.float32)
        else:
            raw = rng.bytes(self.count * spec.nbytes)
            noise = np.frombuffer(bytearray(raw), spec.dtype).reshape(shape)
        return as_tensor(noise, "NHWC").to(self.engine.device.name, self.stream)

    def room_for(self, plan: Plan) -> Tensor:
        """Return an output tensor for a plan."""
        from cvcli.core.tensor import Tensor

        target = plan.target
        device = self.engine.device.name
        shape = (self.count, *target.shape)
        return Tensor.empty(shape, target.dtype, f"N{target.layout}", device)

    def keep_busy(self) -> None:
        """Queue copies that give the host time to queue what is to be timed."""
        dst, src = self._ahead
        for _ in range(_AHEAD):
            self.engine.copy(dst, src, src.nbytes, self.stream)


class _Copy:
    """A plain copy of ``nbytes`` on a device, from inputs in turn."""

    def __init__(self, inputs: Inputs, nbytes: int) -> None:
        allocate = inputs.engine.allocate
        self._inputs, self._nbytes = inputs, nbytes
        fits = nbytes <= inputs.batches[0].nbytes
        self._sources = (
            [batch.buffer for batch in inputs.batches]
            if fits
            else [allocate(nbytes) for _ in _ROTATED[:3]]
        )
        self._target = allocate(nbytes)

    def run(self, turn: int) -> None:
        source = self._sources[turn % len(self._sources)]
        self._inputs.engine.copy(self._target, source, self._nbytes, self._inputs.stream)


def measure(name: str, chain: Chain, inputs: Inputs, repeat: int, *, queued: bool = True) -> Row:
    """Time a chain.

    Without ``queued`` the stream is idle at the start: the host's work may be in the figure too.
    """
    from cvcli.core.apply import apply

    plan = chain.plan(inputs.spec)
    nbytes = inputs.count * must_move(plan)
    out, copy = inputs.room_for(plan), _Copy(inputs, nbytes // 2)
    us, copy_us, host_us = [], [], []
    for turn in range(-_WARM_UP, repeat):
        source = inputs.batches[turn % len(inputs.batches)]
        if queued:
            inputs.keep_busy()
        events = [_mark(inputs.stream)]
        began = time.perf_counter()
        apply(chain, source, stream=inputs.stream, out=out)
        host_us.append((time.perf_counter() - began) * 1e6)
        events.append(_mark(inputs.stream))
        # Half a round away, so that neither reads what the other has just left in a cache.
        copy.run(turn + (len(inputs.batches) + 1) // 2)
        events.append(_mark(inputs.stream))
        inputs.stream.sync()
        us.append(events[1].elapsed(events[0]) * 1e3)
        copy_us.append(events[2].elapsed(events[1]) * 1e3)
    spec, kept = inputs.spec, slice(_WARM_UP, None)
    copied, host = spread(copy_us[kept]), spread(host_us[kept]).median
    return Row(name, spec.dtype, spec.channels, spread(us[kept]), nbytes, copied, host)


def _mark(stream: Stream) -> Event:
    return stream.record(timing=True)


def must_move(plan: Plan) -> int:
    """Return the bytes of the source pixels that an image's plan needs and of its result."""
    import numpy as np

    move = plan.passes[0].move
    needed = [np.unique(index[index >= 0]).size for index in (move.y, move.x)]
    return needed[0] * needed[1] * plan.source.pixel_nbytes + plan.target.nbytes


def spread(us: Sequence[float]) -> Spread:
    """Return the quartiles of timings in microseconds."""
    import numpy as np

    low, median, high = np.quantile(us, (0.25, 0.5, 0.75))
    return Spread(float(median), float(low), float(high))


def typical(operator: Operator, spec: ImageSpec) -> Chain:
    """Return an operator with its first case; a size that must be given is half the image's."""
    from cvcli.core.chain import Chain

    given = dict(operator.cases[0]) if operator.cases else {}
    for p in operator.parameters:
        if p.required and p.name in ("width", "height"):
            given[p.name] = max(1, getattr(spec, p.name) // 2)
    return Chain((operator.step(**given),))


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[OP]...", help="Operators; all by default.")
    ] = None,
    chain: Annotated[
        list[str] | None,
        typer.Option(metavar="CHAIN", help='A chain, such as "flip --axis -1 | invert".'),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda|cuda:N", help="Where they run.")
    ] = "auto",
    dtype: Annotated[
        list[str] | None,
        typer.Option(metavar="uint8|uint16|float32", help="May be given more than once."),
    ] = None,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size in pixels.")] = "1920x1080",
    channels: Annotated[int, typer.Option(min=1, max=4, help="Channels of the images.")] = 3,
    batch: Annotated[
        int | None,
        typer.Option(min=1, show_default="16 on CUDA, 1 on the CPU", help="Images a launch."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default="1",
            help="Threads of the CPU device. One, like the copy beside it, says how good the code "
            "is; a run over files takes one a core.",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Timed launches an operator.")] = 50,
    host: Annotated[bool, typer.Option("--host", help="Time calls on the host instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Time operators on this machine, next to a plain copy of as many bytes.

    Each is run with the first of its test cases, a crop at half size. Times are those of the
    device, without what the call takes on the host, which has a column of its own.
    """
    from cvcli.devices.find import parse_device

    place = parse_device(device)
    on_cpu = place == "cpu"
    if threads is not None and not on_cpu:
        raise UsageError(f"--threads must go with --device cpu, got {place}")
    if host:
        _bench_host(place, [*(names or []), *(chain or [])], repeat, as_json)
        return
    specs = _specs(dtype or ["uint8"], size, channels)
    work = _work(names or [], chain or [], specs[0])
    count = batch or (1 if on_cpu else 16)
    with _cpu_threads(threads or 1 if on_cpu else None):
        rows, errors = _measure_all(work, specs, place, count, repeat)
    about = _about(place, threads or 1, size, count, repeat)
    if as_json:
        _print_json(about, rows, errors)
    else:
        _print_table(about, rows, on_cpu)
    _end(errors)


def _bench_host(device: str, work: Sequence[str], repeat: int, as_json: bool) -> None:
    if work:
        raise UsageError(f"--host must be without operators and chains, got {work[0]!r}")
    rows = measure_host(device, repeat)
    about = _about(device, 1, "224x224", 1, repeat)
    if as_json:
        _print_json(about, rows, [])
        return
    title = f"{about['device_name']} ({about['device']}), host time of one call, 1 x 224x224"
    print_table(title, HEAD, [cells(row) for row in rows], names=1)


def _specs(dtypes: Sequence[str], size: str, channels: int) -> list[ImageSpec]:
    import re

    from cvcli.core.spec import ITEMSIZE, ImageSpec

    match = re.fullmatch(r"([1-9]\d*)[xX]([1-9]\d*)", size)
    if match is None:
        raise UsageError(f"--size must be WIDTHxHEIGHT, got {size!r}")
    for dtype in dtypes:
        if dtype not in ITEMSIZE:
            raise UsageError(f"--dtype must be one of {', '.join(ITEMSIZE)}, got {dtype!r}")
    width, height = int(match[1]), int(match[2])
    return [ImageSpec(height, width, channels, dtype) for dtype in dict.fromkeys(dtypes)]


def _work(names: Sequence[str], chains: Sequence[str], spec: ImageSpec) -> list[tuple[str, Chain]]:
    """Return what to time, by the name it is shown under; wrong names fail here."""
    from cvcli.ops import load_chain, operator_named, operators

    every = operators() if not names and not chains else []
    chosen = [typical(operator, spec) for operator in [*map(operator_named, names), *every]]
    return [(str(chain), chain) for chain in [*chosen, *map(load_chain, chains)]]


@contextmanager
def _cpu_threads(threads: int | None) -> Iterator[None]:
    """Let the CPU device use some threads for a while."""
    if threads is None:
        yield
        return
    from cvcli.devices import open_device
    from cvcli.devices.cpu import cpu_threads

    device: Any = open_device("cpu")
    before = getattr(device, "threads", cpu_threads())
    device.threads = threads
    try:
        yield
    finally:
        device.threads = before


def _measure_all(
    work: Sequence[tuple[str, Chain]],
    specs: Sequence[ImageSpec],
    device: str,
    count: int,
    repeat: int,
) -> tuple[list[Row], list[CvcliError]]:
    rows, errors = [], []
    for spec in specs:
        inputs = Inputs(device, spec, count)
        for name, chain in work:
            try:
                rows.append(measure(name, chain, inputs, repeat))
            except CvcliError as error:
                errors.append(error)
    return rows, errors


def _about(device: str, threads: int, size: str, batch: int, repeat: int) -> dict[str, Any]:
    """Return what the rows were measured on, and how."""
    from cvcli.cli import doctor

    machine = doctor.machine()
    index = device.partition(":")[2]
    name = machine["gpus"][int(index)]["name"] if index else machine["processor"]
    used = {"threads": threads} if not index else {}
    run = {"device": device, "device_name": name, "size": size, "batch": batch, "repeat": repeat}
    return {"schema_version": SCHEMA_VERSION, "machine": machine, **run, **used}


def _print_json(
    about: dict[str, Any], rows: Sequence[Row | HostRow], errors: Sequence[CvcliError]
) -> None:
    import json

    body = {"rows": [row.as_json() for row in rows], "errors": [str(error) for error in errors]}
    emit(json.dumps(about | body, indent=1) + "\n")


def _print_table(about: dict[str, Any], rows: Sequence[Row], on_cpu: bool) -> None:
    unit, scale = ("ms", 1e3) if on_cpu else ("us", 1.0)
    head = ["operator", "dtype", unit, "spread", "GB/s", "x copy", "host us"]
    lines = [_cells(row, scale) for row in rows]
    title = f"{about['device_name']} ({about['device']}), {about['batch']} x {about['size']}"
    title += f", threads: {about['threads']}" if on_cpu else ""
    print_table(title, head, lines, names=2)


def _cells(row: Row, scale: float) -> list[str]:
    return [
        row.operator,
        row.dtype,
        f"{row.us.median / scale:.{3 if scale > 1 else 1}f}",
        f"{row.us.share:.0%}",
        f"{row.gb_per_s:.1f}",
        f"{row.ratio:.2f}",
        f"{row.host_us:.1f}",
    ]


def _end(errors: Sequence[CvcliError]) -> None:
    from cvcli.cli.console import print_error

    for error in errors:
        print_error(error)
    raise typer.Exit(EXIT_FAILED if errors else EXIT_OK)
