"""A toy GPU library: arrays that other streams than ours write, on a simulated GPU."""

from __future__ import annotations

import numpy as np

from races.simulated import POISON

ABSENT = object()
# What was freed stays readable, so that a kernel that comes too late reads poison.
_FREED = []


class ToyStream:
    """A stream of the toy library."""

    def __init__(self, device, handle=None):
        self.device = device
        self.handle = device.create_stream() if handle is None else handle

    def __int__(self):
        return self.handle

    def __cuda_stream__(self):
        return 0, self.handle


class ToyArray:
    """An array of the toy library; ``named`` is what it says of its stream.

    It starts poisoned, and is poisoned again when it is freed.
    """

    def __init__(self, device, shape, named=ABSENT, version=3):
        self.device, self.named, self.version = device, named, version
        self.memory = np.full(shape, POISON, np.uint8)

    @property
    def __cuda_array_interface__(self):
        interface = {
            "version": self.version,
            "shape": self.memory.shape,
            "typestr": self.memory.dtype.str,
            "data": (self.memory.ctypes.data, False),
            "strides": None,
        }
        return interface if self.named is ABSENT else {**interface, "stream": self.named}

    def write(self, stream, picture):
        """Queue that a picture, or one value everywhere, is written."""
        memory, picture = self.memory, np.array(picture, np.uint8)
        self.device.put(stream, lambda: np.copyto(memory, picture))

    def read(self, stream):
        """Queue a read, until which the array lives; return the list for what was read."""
        seen = []
        self.device.put(stream, lambda: seen.append(self.memory.copy()))
        return seen

    def __del__(self):
        self.memory[...] = POISON
        _FREED.append(self.memory)
        del _FREED[:-500]


def consume(device, stream, interface):
    """Queue a read of someone's array on a stream, by the rules for consumers; return a list."""
    seen, named = [], interface["stream"]
    (pointer, _), shape = interface["data"], interface["shape"]
    if named is not None:
        follow(device, stream, named)
    array = np.asarray(_Host(pointer, shape, interface["typestr"], interface["strides"]))
    device.put(stream, lambda: seen.append(array.copy()))
    if named is not None:
        follow(device, named, stream)
    return seen


def follow(device, later, earlier):
    """Make one stream wait for another."""
    event = device.create_event(timing=False)
    device.record_event(event, int(earlier))
    device.wait_event(int(later), event)
    device.destroy_event(event)


class _Host:
    def __init__(self, pointer, shape, typestr, strides):
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, False),
            "strides": strides,
        }
