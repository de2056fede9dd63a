"""Races made certain without a GPU: gates hold streams, so that whoever doesn't wait is wrong.

Arrays of another library, which its own streams write, live on a simulated GPU.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from conftest import assert_same
from races.pictures import OTHER, PICTURE, SHAPE, half_turn, on, poisoned
from races.simulated import (
    LEGACY,
    PER_THREAD,
    POISON,
    gated,
    opened_late,
    stays_busy,
)
from races.toys import ABSENT, ToyArray, ToyStream, consume

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device

pytest_plugins = ["races.fixtures"]

# What a producer may say that names no stream for sure; the last two are against the rules.
VAGUE = {"legacy": LEGACY, "per thread": PER_THREAD, "absent": ABSENT, "zero": 0}
VAGUE |= {"negative": -7, "no number": "default"}
OPT_OUT = {"None": None, "-1": -1}


def over(values):
    return pytest.mark.parametrize("named", values.values(), ids=values.keys())


def written(gpu, named, picture=PICTURE):
    """An idle array of the toy library."""
    array = ToyArray(gpu, SHAPE, named)
    array.memory[...] = picture
    return array


# What a producer says of its stream


@over(VAGUE)
def test_a_producer_that_names_no_stream_is_waited_for(gpu, named):
    theirs, ours, array = ToyStream(gpu), cvcli.Stream("cuda:0"), ToyArray(gpu, SHAPE, named)
    with gated(gpu, theirs) as gate, opened_late(gate):
        array.write(theirs, PICTURE)
        tensor = cvcli.as_tensor(array)
        out = cvcli.flip(tensor, -1, stream=ours)
    assert_same(out.numpy(ours), half_turn(PICTURE))


@over(VAGUE)
def test_writing_over_an_array_waits_for_a_producer_that_names_no_stream(gpu, named):
    theirs, ours, array = ToyStream(gpu), cvcli.Stream("cuda:0"), ToyArray(gpu, SHAPE, named)
    with gated(gpu, theirs) as gate, opened_late(gate):
        array.write(theirs, POISON)
        cvcli.flip(on("cuda:0", PICTURE), -1, stream=ours, out=cvcli.as_tensor(array))
    ours.sync()
    gpu.synchronize()
    assert_same(array.memory, half_turn(PICTURE))


def test_a_producer_that_names_its_stream_is_waited_for(gpu):
    theirs, ours = ToyStream(gpu), cvcli.Stream("cuda:0")
    array = ToyArray(gpu, SHAPE, theirs.handle)
    with gated(gpu, theirs):
        array.write(theirs, PICTURE)
        out = cvcli.flip(cvcli.as_tensor(array), -1, stream=ours)
        assert stays_busy(gpu, ours)
    assert_same(out.numpy(ours), half_turn(PICTURE))


def test_writing_over_an_array_waits_for_the_stream_its_producer_names(gpu):
    theirs, ours = ToyStream(gpu), cvcli.Stream("cuda:0")
    array, src = ToyArray(gpu, SHAPE, theirs.handle), on("cuda:0", PICTURE)
    with gated(gpu, theirs):
        array.write(theirs, POISON)
        cvcli.flip(src, -1, stream=ours, out=cvcli.as_tensor(array))
        assert stays_busy(gpu, ours)
    ours.sync()
    gpu.synchronize()
    assert_same(array.memory, half_turn(PICTURE))


def test_the_producer_is_asked_when_its_array_is_wrapped(gpu):
    """What it queues later is none of ours: we must not wait for it, and it waits for us."""
    theirs, ours = ToyStream(gpu), cvcli.Stream("cuda:0")
    array = ToyArray(gpu, SHAPE, theirs.handle)
    array.write(theirs, PICTURE)
    tensor = cvcli.as_tensor(array)
    with gated(gpu, theirs):
        out = cvcli.flip(tensor, -1, stream=ours)
        ours.sync()
        assert not gpu.query_stream(theirs.handle)
    assert_same(out.numpy(ours), half_turn(PICTURE))


@over(OPT_OUT)
def test_a_producer_that_opts_out_is_not_waited_for(gpu, named):
    """The race is there: it is what the producer asked for."""
    theirs, ours, array = ToyStream(gpu), cvcli.Stream("cuda:0"), ToyArray(gpu, SHAPE, named)
    with gated(gpu, theirs):
        array.write(theirs, PICTURE)
        out = cvcli.flip(cvcli.as_tensor(array), -1, stream=ours)
        ours.sync()
    assert (out.numpy(ours) == POISON).all()


@over(OPT_OUT)
def test_a_producer_that_opts_out_is_not_made_to_wait(gpu, named):
    theirs, ours, array = ToyStream(gpu), cvcli.Stream("cuda:0"), written(gpu, named)
    with gated(gpu, ours):
        out = cvcli.flip(cvcli.as_tensor(array), -1, stream=ours)
        array.write(theirs, OTHER)
        gpu.synchronize_stream(theirs.handle)
    assert_same(out.numpy(ours), half_turn(OTHER))


# The reverse barrier


def named_by(how, gpu):
    theirs = ToyStream(gpu) if how == "handle" else ToyStream(gpu, LEGACY)
    return theirs, theirs.handle if how == "handle" else ABSENT


@pytest.mark.parametrize("how", ("handle", "default"))
def test_a_producer_may_overwrite_what_we_read(gpu, how):
    theirs, named = named_by(how, gpu)
    ours, array = cvcli.Stream("cuda:0"), written(gpu, named)
    tensor = cvcli.as_tensor(array)
    cvcli.flip(tensor, -1, stream=ours).buffer.synchronize()
    with gated(gpu, ours):
        out = cvcli.flip(tensor, -1, stream=ours)
        array.write(theirs, POISON)
        assert stays_busy(gpu, theirs)
    assert_same(out.numpy(ours), half_turn(PICTURE))
    gpu.synchronize()
    assert (array.memory == POISON).all()


@pytest.mark.parametrize("how", ("handle", "default"))
def test_a_producer_reads_what_we_wrote(gpu, how):
    theirs, named = named_by(how, gpu)
    ours, array, src = cvcli.Stream("cuda:0"), written(gpu, named, OTHER), on("cuda:0", PICTURE)
    target = cvcli.as_tensor(array)
    cvcli.flip(src, 0, stream=ours, out=target)
    with gated(gpu, ours):
        cvcli.flip(src, -1, stream=ours, out=target)
        seen = array.read(theirs)
        assert stays_busy(gpu, theirs)
    gpu.synchronize()
    assert_same(seen[0], half_turn(PICTURE))


def test_a_producer_may_overwrite_what_we_copied(gpu):
    theirs, ours = ToyStream(gpu), cvcli.Stream("cuda:0")
    array, dst = written(gpu, theirs.handle), Tensor.empty(SHAPE, "uint8", "HWC", "cuda:0")
    tensor, engine = cvcli.as_tensor(array), engine_of("cuda:0")
    with gated(gpu, ours):
        engine.copy(dst.buffer, tensor.buffer, PICTURE.nbytes, ours)
        array.write(theirs, POISON)
        assert stays_busy(gpu, theirs)
    assert_same(dst.numpy(ours), PICTURE)


@pytest.mark.parametrize("named", (LEGACY, None), ids=("default", "None"))
def test_an_array_dropped_in_use_is_freed_after_it(gpu, named):
    ours, other, array = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), written(gpu, named)
    tensor, x = cvcli.as_tensor(array), on("cuda:0", OTHER[:9])
    cvcli.flip(tensor, -1, stream=ours).buffer.synchronize()
    alive = weakref.ref(array)
    with gated(gpu, ours):
        out = cvcli.flip(tensor, -1, stream=ours)
        del array, tensor
        gc.collect()
        cvcli.invert(x, stream=other)
        assert alive() is not None
    assert_same(out.numpy(ours), half_turn(PICTURE))
    ours.sync()
    cvcli.invert(x, stream=other)
    gc.collect()
    assert alive() is None


# Export


def test_a_consumer_follows_the_stream_we_name(gpu):
    ours, theirs = cvcli.Stream("cuda:0"), ToyStream(gpu)
    x, y = on("cuda:0", PICTURE), on("cuda:0", OTHER)
    with gated(gpu, ours):
        out = cvcli.flip(x, -1, stream=ours)
        interface = out.cuda().__cuda_array_interface__
        assert (interface["version"], interface["stream"]) == (3, ours.handle)
        seen = consume(gpu, theirs, interface)
        cvcli.flip(y, -1, stream=ours, out=out)
        assert stays_busy(gpu, theirs)
    gpu.synchronize()
    assert_same(seen[0], half_turn(PICTURE))
    assert_same(out.numpy(), half_turn(OTHER))


def test_default_streams_are_named_as_the_rules_say(gpu):
    """Zero is not allowed; a tensor that nobody has written is told from one written there."""
    x = cvcli.flip(on("cuda:0", PICTURE), -1, stream=cvcli.as_stream(0, "cuda:0"))
    assert x.cuda().__cuda_array_interface__["stream"] == LEGACY
    fresh = Tensor.empty((7, 5, 3), "uint8", "HWC", "cuda:0")
    assert fresh.cuda().__cuda_array_interface__["stream"] is None
    theirs = ToyStream(gpu)
    again = cvcli.as_tensor(written(gpu, theirs.handle)).cuda().__cuda_array_interface__
    assert again["stream"] == theirs.handle


def test_work_on_the_default_stream_is_waited_for(place):
    default, ours, x = cvcli.as_stream(0, place), cvcli.Stream(place), on(place, PICTURE)
    device = open_device(place)
    with gated(device, default):
        turned = cvcli.flip(x, -1, stream=default)
        back = cvcli.flip(turned, -1, stream=ours)
        assert stays_busy(device, ours)
    assert_same(back.numpy(ours), PICTURE)


# Our own tensors


def test_read_after_write(place):
    a, b, x = cvcli.Stream(place), cvcli.Stream(place), on(place, PICTURE)
    target, device = poisoned(place), open_device(place)
    with gated(device, a):
        cvcli.flip(x, -1, stream=a, out=target)
        back = cvcli.flip(target, -1, stream=b)
        assert stays_busy(device, b)
    assert_same(back.numpy(), PICTURE)


def test_write_after_read(place):
    a, b, y = cvcli.Stream(place), cvcli.Stream(place), on(place, OTHER)
    x, device = poisoned(place), open_device(place)
    with gated(device, a):
        turned = cvcli.flip(x, -1, stream=a)
        cvcli.flip(y, -1, stream=b, out=x)
        assert stays_busy(device, b)
    assert (turned.numpy() == POISON).all()
    assert_same(x.numpy(), half_turn(OTHER))


def test_write_after_every_read(place):
    """A reader on a third stream counts as much as the first, and the last."""
    writer, y, device = cvcli.Stream(place), on(place, OTHER), open_device(place)
    for slow in range(3):
        readers, x = [cvcli.Stream(place) for _ in range(3)], poisoned(place)
        with gated(device, readers[slow]):
            turned = [cvcli.flip(x, -1, stream=reader) for reader in readers]
            cvcli.flip(y, -1, stream=writer, out=x)
            assert stays_busy(device, writer)
        assert all((out.numpy() == POISON).all() for out in turned)
        assert_same(x.numpy(), half_turn(OTHER))


def test_write_after_write(place):
    a, b = cvcli.Stream(place), cvcli.Stream(place)
    x, y = on(place, PICTURE), on(place, OTHER)
    target, device = poisoned(place), open_device(place)
    with gated(device, a):
        cvcli.flip(x, -1, stream=a, out=target)
        cvcli.flip(y, -1, stream=b, out=target)
        assert stays_busy(device, b)
    assert_same(target.numpy(), half_turn(OTHER))


def test_two_threads_share_a_tensor(place):
    """One writes white and black in turn; what the others read is never a mixture."""
    colours = [on(place, np.full((500, 700, 3), value, np.uint8)) for value in (0, 255)]
    shared, failures = on(place, np.zeros((500, 700, 3), np.uint8)), []

    def write():
        with cvcli.Stream(place):
            for turn in range(60):
                cvcli.flip(colours[turn % 2], -1, out=shared)

    def read():
        with cvcli.Stream(place):
            for _ in range(40):
                failures.extend(np.ptp(cvcli.flip(shared, -1).numpy(), keepdims=True).nonzero()[0])

    threads = [threading.Thread(target=work) for work in (write, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_stream_may_be_deleted_before_its_work_is_done(place):
    guard, a, b = (cvcli.Stream(place) for _ in range(3))
    x, y, device = on(place, PICTURE), on(place, OTHER), open_device(place)
    with gated(device, guard):
        a.wait(guard)
        turned = cvcli.flip(x, -1, stream=a)
        del a
        gc.collect()
        back = cvcli.flip(turned, -1, stream=b)
        cvcli.flip(y, -1, stream=b, out=x)
        assert stays_busy(device, b)
    assert_same(back.numpy(), PICTURE)
    assert_same(turned.numpy(), half_turn(PICTURE))
