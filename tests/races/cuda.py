"""CuPy as the other library, and kernels that keep its streams busy for a known time."""

from __future__ import annotations

import numpy as np

import cvcli

ABSENT = object()
# The global timer counts nanoseconds, whatever the clock of the processors is at the moment.
_SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
"""


def spin(milliseconds, stream=None):
    """Keep a stream busy, by default CuPy's current one; also one of ours."""
    import cupy

    kernel = _spin_kernel(cupy)
    arguments = (1,), (1,), (np.int64(milliseconds * 1e6),)
    if stream is None:
        kernel(*arguments)
        return
    with theirs(stream):
        kernel(*arguments)


def _spin_kernel(cupy, made=[]):  # noqa: B006
    if not made:
        made.append(cupy.RawKernel(_SPIN, "spin"))
    return made[0]


def theirs(stream):
    """A stream of any library as one of CuPy."""
    import cupy

    if isinstance(stream, cupy.cuda.Stream):
        return stream
    return cupy.cuda.ExternalStream(int(stream))


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


def warm(picture):
    """Compile and load every kernel that the races use, which takes longer than a spin."""
    import cupy

    spin(0.001)
    array = cupy.asarray(picture)
    array.fill(3)
    array[...] = cupy.asarray(picture)
    array.copy()
    tensor = cvcli.as_tensor(array)
    cvcli.flip(cvcli.flip(tensor, -1), 0).numpy()
    spin(0.001, cvcli.Stream("cuda:0"))
    settle()
