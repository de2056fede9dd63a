"""Where random programs run: a device, another library on it, and ways to make streams slow."""

from __future__ import annotations

import time
from contextlib import ExitStack

import numpy as np

import cvcli
from races import cuda
from races.simulated import LEGACY, POISON, Adversary, SimulatedGpu, installed
from races.toys import ABSENT, ToyArray, ToyStream, consume, follow


class Simulated:
    """A simulated GPU; its producers are two streams of a toy library and the default stream."""

    device_type = Adversary

    def __init__(self):
        self._stack = ExitStack()
        self.device = self.device_type()
        self._stack.callback(self.device.close)
        self._stack.enter_context(installed(self.device))
        self.producers = [ToyStream(self.device), ToyStream(self.device)]
        self.producers.append(ToyStream(self.device, LEGACY))

    def stream(self):
        return cvcli.Stream("cuda:0")

    def pace(self, stream, late):
        """Let what is queued on a stream from now on run as late as can be, or at once."""
        self.device.pace(stream, eager=not late)

    def array(self, shape, how, producer):
        """An array of the producer that says ``how`` it names its stream."""
        return ToyArray(self.device, shape, named(how, producer))

    def wrapped(self, array):
        return cvcli.as_tensor(array)

    def write(self, array, producer, picture):
        array.write(producer, picture)

    def follow(self, later, earlier):
        follow(self.device, later, earlier)

    def read(self, array, producer):
        """Let the producer read; return a function that gives what it saw when all is done."""
        seen = array.read(producer)
        return lambda: seen[0]

    def consume(self, tensor, consumer):
        """Let someone read a tensor of ours, as `read` does, and wait for that reader alone."""
        seen = consume(self.device, consumer, tensor.cuda().__cuda_array_interface__)
        self.device.synchronize_stream(int(consumer))
        return lambda: seen[0]

    def finish(self):
        self.device.synchronize()

    def close(self):
        self._stack.close()


class Threaded(Simulated):
    """A simulated GPU with threads, some of which oversleep."""

    device_type = SimulatedGpu

    def pace(self, stream, late):
        if late:
            self.device.put(stream, lambda: time.sleep(0.001))


class Cuda:
    """The first GPU; its producers are two streams of CuPy and its default stream."""

    def __init__(self):
        import cupy

        cuda.settle()
        self._cupy, self._arrays = cupy, []
        self.producers = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
        self.producers.append(cupy.cuda.Stream.null)

    def stream(self):
        return cvcli.Stream("cuda:0")

    def pace(self, stream, late):
        if late:
            cuda.spin(0.3, stream)

    def array(self, shape, how, producer):
        array = self._cupy.full(shape, POISON, np.uint8)
        # Used on several streams: CuPy's pool would hand it out while one of them still reads it.
        self._arrays.append(array)
        cuda.settle()
        handle = named(how, producer.ptr or LEGACY)
        return cuda.Named(array, cuda.ABSENT if handle is ABSENT else handle)

    def wrapped(self, array):
        return cvcli.as_tensor(array)

    def write(self, array, producer, picture):
        with producer:
            array.array[...] = self._cupy.asarray(picture)

    def follow(self, later, earlier):
        later.wait_event(earlier.record())

    def read(self, array, producer):
        with producer:
            copy = array.array.copy()
        return lambda: self._cupy.asnumpy(copy)

    def consume(self, tensor, consumer):
        with consumer:
            copy = self._cupy.asarray(tensor.cuda()).copy()
        # CuPy doesn't make our stream wait for its read.
        consumer.synchronize()
        return lambda: self._cupy.asnumpy(copy)

    def finish(self):
        cuda.settle()

    def close(self):
        cuda.settle()


def named(how, producer):
    return {"handle": int(producer), "default": LEGACY, "absent": ABSENT, "nothing": None}[how]
