"""``cvcli bench --host``: what one call takes on the host, next to nothing of it on the device.

Calls are timed in runs short enough for a stream's queue, which is empty when a run begins, so
none waits for the device. The image is small: 1x224x224x3 uint8.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvcli.cli.bench import Spread
    from cvcli.core.stream import Stream

SHAPE = (1, 224, 224, 3)
_CALLS = 100
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class HostRow:
    """One kind of call; ``us`` is a call's microseconds over runs of a hundred."""

    call: str
    us: Spread

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure_host(device: str, repeat: int) -> list[HostRow]:
    """Time an operator, the way in and the way out on a device, in ``repeat`` runs each."""
    from cvcli.core.stream import Stream

    stream = Stream(device)
    return [
        HostRow(name, _timed(call, stream, repeat)) for name, call in _calls(device, stream).items()
    ]


def _calls(device: str, stream: Stream) -> dict[str, Callable[[], object]]:
    import numpy as np

    from cvcli.core.interop import as_tensor
    from cvcli.core.tensor import Tensor
    from cvcli.ops import operator_named

    host = np.zeros(SHAPE, np.uint8)
    # Written by us on this stream, as a result would be.
    src = operator_named("posterize")(as_tensor(host, "NHWC").to(device, stream), 8, stream=stream)
    out = Tensor.empty(SHAPE, "uint8", "NHWC", device)
    flip = operator_named("flip")
    calls: dict[str, Callable[[], object]] = {
        "flip(x, -1)": lambda: flip(src, -1, stream=stream),
        "flip(x, -1, out=y)": lambda: flip(src, -1, stream=stream, out=out),
    }
    if device == "cpu":
        ways = {
            "as_tensor(numpy_array)": lambda: as_tensor(host, "NHWC"),
            "numpy.asarray(x)": lambda: np.asarray(src),
        }
        return calls | ways
    from cvcli.devices.cuda import array_library

    cupy = array_library()
    theirs = cupy.asarray(host)
    ways = {
        "as_tensor(cupy_array)": lambda: as_tensor(theirs, "NHWC"),
        "cupy.asarray(x.cuda())": lambda: cupy.asarray(src.cuda()),
    }
    return calls | ways


def _timed(call: Callable[[], object], stream: Stream, repeat: int) -> Spread:
    from cvcli.cli.bench import spread

    us = []
    for _ in range(-_WARM_UP, repeat):
        stream.sync()
        began = time.perf_counter()
        for _ in range(_CALLS):
            call()
        us.append((time.perf_counter() - began) * 1e6 / _CALLS)
    return spread(us[_WARM_UP:])


def cells(row: HostRow) -> list[str]:
    """Return a row's words and figures for the table."""
    return [row.call, f"{row.us.median:.2f}", f"{row.us.low:.2f}", f"{row.us.high:.2f}"]


HEAD = ("call", "us", "low", "high")
