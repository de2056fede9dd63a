"""Races over DLPack, where each side makes the other's stream wait."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import assert_same
from races.cuda import POISON, RACES, non_blocking, on_gpu, race, spin
from races.pictures import OTHER, PICTURE, SHAPE, half_turn, on
from races.simulated import LEGACY, gated, opened_late, stays_busy
from races.toys import ToyArray, ToyStream, follow

import cvcli
from cvcli.devices import open_device

pytest_plugins = ["races.fixtures"]


class Lender:
    """An array of the toy library that offers DLPack alone, and orders whoever takes it."""

    def __init__(self, array, stream):
        self.array, self.stream, self.asked = array, stream, []

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append(stream)
        if stream != -1:
            follow(self.array.device, LEGACY if stream is None else stream, self.stream)
        # Simulated memory is the host's, so NumPy's capsule describes it.
        return self.array.memory.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("where", ("the stream that took it", "another stream"))
def test_a_producer_orders_our_stream_and_we_the_others(gpu, where):
    theirs, current, other = ToyStream(gpu), cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    array = ToyArray(gpu, SHAPE)
    lender, used = Lender(array, theirs), current if where.startswith("the") else other
    with gated(gpu, theirs) as gate:
        array.write(theirs, PICTURE)
        with current:
            tensor = cvcli.as_tensor(lender)
        assert lender.asked == [current.handle] and tensor.pointer == array.memory.ctypes.data
        assert stays_busy(gpu, current)
        # What the producer has ordered need not be all that writes: the first use waits.
        with opened_late(gate):
            out = cvcli.flip(tensor, -1, stream=used)
    assert_same(out.numpy(used), half_turn(PICTURE))


def test_the_default_stream_is_passed_as_the_rules_say(gpu):
    theirs, array = ToyStream(gpu), ToyArray(gpu, SHAPE)
    array.write(theirs, PICTURE)
    lender = Lender(array, theirs)
    tensor = cvcli.as_tensor(lender)
    assert lender.asked == [LEGACY]
    assert_same(cvcli.flip(tensor, -1, stream=cvcli.Stream("cuda:0")).numpy(), half_turn(PICTURE))


@pytest.mark.parametrize("stream", ("handle", 1, None))
def test_a_consumers_stream_is_made_to_wait(gpu, stream):
    ours, theirs = cvcli.Stream("cuda:0"), ToyStream(gpu)
    x = on("cuda:0", PICTURE)
    waiting = theirs.handle if stream == "handle" else LEGACY
    with gated(gpu, ours):
        out = cvcli.flip(x, -1, stream=ours)
        assert out.__dlpack_device__() == (2, 0)
        capsule = out.__dlpack__(stream=theirs.handle if stream == "handle" else stream)
        assert stays_busy(gpu, waiting)
    gpu.synchronize()
    del capsule
    assert_same(out.numpy(), half_turn(PICTURE))


def test_a_consumer_may_opt_out(gpu):
    ours, theirs, x = cvcli.Stream("cuda:0"), ToyStream(gpu), on("cuda:0", PICTURE)
    with gated(gpu, ours):
        out = cvcli.flip(x, -1, stream=ours)
        capsule = out.__dlpack__(stream=-1)
        assert not stays_busy(gpu, theirs.handle) and not stays_busy(gpu, LEGACY)
    del capsule


def test_numpy_takes_a_result_when_it_is_written():
    device, ours = open_device("cpu"), cvcli.Stream("cpu")
    x, out = cvcli.as_tensor(PICTURE.copy()), cvcli.as_tensor(OTHER.copy())
    with gated(device, ours) as gate:
        cvcli.flip(x, -1, stream=ours, out=out)
        with opened_late(gate):
            view = np.from_dlpack(out)
    assert view.ctypes.data == out.pointer
    assert_same(view.copy(), half_turn(PICTURE))


class OnlyDlpack:
    """An array that offers nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@pytest.mark.gpu
def test_a_cupy_array_by_dlpack_is_read_after_it_is_written():
    assert race(lambda array, _: OnlyDlpack(array), inside=True) == 0


@pytest.mark.gpu
def test_a_cupy_array_by_dlpack_that_is_wrapped_outside_its_streams_block():
    """CuPy then orders its default stream alone, which is not the one that writes."""
    assert race(lambda array, _: OnlyDlpack(array), inside=False) == 0


@pytest.mark.gpu
def test_a_cupy_consumer_reads_after_our_write():
    import cupy

    ours, consumer, wrong = cvcli.Stream("cuda:0"), non_blocking(), 0
    sources, out = [on_gpu(value) for value in range(10)], on_gpu(POISON)
    for turn, milliseconds in enumerate(RACES[::2]):
        spin(milliseconds, ours)
        cvcli.flip(sources[turn % 10], -1, stream=ours, out=out)
        with consumer:
            view = cupy.from_dlpack(out)
            assert view.data.ptr == out.pointer
            seen = view.copy()
        consumer.synchronize()
        wrong += bool((seen != turn % 10).any())
    assert wrong == 0
