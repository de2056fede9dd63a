"""CuPy as the other library, and kernels that keep its streams busy for a known time."""

from __future__ import annotations

from functools import cache

import numpy as np
from conftest import noise

import cvcli

ABSENT = object()
PICTURE = noise((64, 80, 3), "uint8")
SHAPE, POISON = PICTURE.shape, 0xDB
# Many short races, and a few of the length at which nothing can be luck.
RACES = (2,) * 200 + (50,) * 4
# The global timer counts nanoseconds, whatever the clock of the processors is at the moment.
_SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds) {
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
"""


def spin(milliseconds, stream=None):
    """Keep a stream busy, by default CuPy's current one; also one of ours."""
    kernel = _spin_kernel()
    arguments = (1,), (1,), (np.int64(milliseconds * 1e6),)
    if stream is None:
        kernel(*arguments)
        return
    with theirs(stream):
        kernel(*arguments)


@cache
def _spin_kernel():
    import cupy

    return cupy.RawKernel(_SPIN, "spin")


def theirs(stream):
    """A stream of any library, or the handle of one, as a stream of CuPy."""
    import cupy

    if isinstance(stream, cupy.cuda.Stream):
        return stream
    return cupy.cuda.Stream.from_external(_Handle(stream))


class _Handle:
    """What names a stream by the protocol for them; it keeps the stream alive."""

    def __init__(self, stream):
        self.stream = stream

    def __cuda_stream__(self):
        return 0, int(self.stream)


def settle():
    """Wait for all that is queued on the device, by whoever."""
    import cupy

    cupy.cuda.Device().synchronize()


class Named:
    """A CuPy array that says what it is told to say of its stream."""

    def __init__(self, array, named=ABSENT, version=3):
        self.array, self.named, self.version = array, named, version

    @property
    def __cuda_array_interface__(self):
        interface = dict(self.array.__cuda_array_interface__, version=self.version)
        interface.pop("stream", None)
        return interface if self.named is ABSENT else {**interface, "stream": self.named}


def warm():
    """Compile and load every kernel that the races use, which takes longer than a spin."""
    import cupy

    spin(0.001)
    array = cupy.asarray(PICTURE)
    array.fill(3)
    array[...] = cupy.asarray(PICTURE)
    array.copy()
    tensor = cvcli.as_tensor(array)
    cvcli.flip(cvcli.flip(tensor, -1), 0).numpy()
    spin(0.001, cvcli.Stream("cuda:0"))
    settle()


def non_blocking():
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def poisoned(count=1):
    import cupy

    arrays = [cupy.full(SHAPE, POISON, cupy.uint8) for _ in range(count)]
    settle()
    return arrays[0] if count == 1 else arrays


def on_gpu(value):
    """A tensor of ours with one value everywhere, and nothing pending."""
    tensor = cvcli.posterize(cvcli.as_tensor(np.full(SHAPE, value, np.uint8)).to("cuda:0"), 16)
    tensor.buffer.synchronize()
    return tensor


def race(say, *, inside, races=RACES, producer=None):
    """Let a producer write late and us read at once; return how often we were wrong.

    ``say`` makes of a CuPy array and its stream what is handed to us.
    """
    array, ours, wrong = poisoned(), cvcli.Stream("cuda:0"), 0
    producer = producer or non_blocking()
    for turn, milliseconds in enumerate(races):
        array.fill(POISON)
        settle()
        with producer:
            spin(milliseconds)
            array.fill(turn % 200)
            tensor = cvcli.as_tensor(say(array, producer)) if inside else None
        tensor = tensor or cvcli.as_tensor(say(array, producer))
        out = cvcli.flip(tensor, -1, stream=ours)
        wrong += bool((out.numpy(ours) != turn % 200).any())
        settle()
    return wrong
