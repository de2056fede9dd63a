"""Races made certain on a GPU: a kernel that spins, then the write, then our use of it at once.

Buffers are poisoned before, and each turn writes another value, so that nothing stale passes.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from conftest import assert_same, noise
from races.counting import counted
from races.cuda import (
    ABSENT,
    POISON,
    RACES,
    SHAPE,
    Named,
    non_blocking,
    on_gpu,
    poisoned,
    race,
    settle,
    spin,
    warm,
)

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device

pytestmark = pytest.mark.gpu
# What a producer says of its stream: itself by CuPy, or one of the words of the interface.
VAGUE = {"legacy": 1, "per thread": 2, "zero": 0, "Numba v2": ABSENT}
OPT_OUT = {"None": None, "-1": -1}


@pytest.fixture(scope="module", autouse=True)
def warmed():
    warm()
    yield
    settle()


def over(values):
    return pytest.mark.parametrize("named", values.values(), ids=values.keys())


INSIDE = pytest.mark.parametrize("inside", (True, False), ids=("inside", "outside"))


def test_the_spin_takes_its_time():
    settle()
    begin = time.perf_counter()
    spin(50)
    settle()
    assert 0.045 < time.perf_counter() - begin < 1


# Read after the producer's write


@INSIDE
def test_a_cupy_array_is_read_after_it_is_written(inside):
    """Inside its stream's block CuPy names that stream, outside it the default stream."""
    assert race(lambda array, producer: array, inside=inside) == 0


def test_an_array_of_cupys_default_stream_is_read_after_it_is_written():
    import cupy

    assert race(lambda array, _: array, inside=True, producer=cupy.cuda.Stream.null) == 0


@INSIDE
def test_an_array_with_a_real_handle_is_read_after_it_is_written(inside):
    assert race(lambda array, producer: Named(array, producer.ptr), inside=inside) == 0


@INSIDE
@over(VAGUE)
def test_an_array_that_names_no_stream_is_read_after_it_is_written(named, inside):
    version = 2 if named is ABSENT else 3
    assert race(lambda array, _: Named(array, named, version), inside=inside) == 0


@INSIDE
@over(OPT_OUT)
def test_a_producer_that_opts_out_is_raced(named, inside):
    """It asked for no wait, and the race that the other tests guard against is real."""
    assert race(lambda array, _: Named(array, named), inside=inside, races=(2,) * 10) > 0


def test_the_producers_stream_may_go_on_after_the_wrap():
    """What it queues after the wrap is not waited for."""
    array, ours, producer = poisoned(), cvcli.Stream("cuda:0"), non_blocking()
    with producer:
        array.fill(7)
        tensor = cvcli.as_tensor(array)
        spin(200)
    out = cvcli.flip(tensor, -1, stream=ours)
    ours.sync()
    assert not producer.done
    # The producer itself was made to wait for us, so the result is read on our stream.
    assert (out.numpy(ours) == 7).all()


# The reverse barrier


@pytest.mark.parametrize("how", ("handle", "default"))
def test_a_producer_may_overwrite_what_we_read(how):
    import cupy

    producer = non_blocking() if how == "handle" else cupy.cuda.Stream.null
    array, ours, wrong = poisoned(), cvcli.Stream("cuda:0"), 0
    for turn, milliseconds in enumerate(RACES):
        with producer:
            array.fill(turn % 200)
            tensor = cvcli.as_tensor(array)
        cvcli.flip(tensor, 0, stream=ours)
        spin(milliseconds, ours)
        out = cvcli.flip(tensor, -1, stream=ours)
        with producer:
            array.fill(POISON)
        wrong += bool((out.numpy(ours) != turn % 200).any())
        settle()
    assert wrong == 0


def test_a_producer_that_opted_out_spoils_what_we_read():
    array, ours, producer, wrong = poisoned(), cvcli.Stream("cuda:0"), non_blocking(), 0
    for turn in range(10):
        array.fill(turn)
        settle()
        tensor = cvcli.as_tensor(Named(array, None))
        spin(2, ours)
        out = cvcli.flip(tensor, -1, stream=ours)
        with producer:
            array.fill(POISON)
        wrong += bool((out.numpy(ours) != turn).any())
    assert wrong > 0


@pytest.mark.parametrize("how", ("handle", "default"))
def test_a_producer_reads_what_we_wrote(how):
    import cupy

    producer = non_blocking() if how == "handle" else cupy.cuda.Stream.null
    array, ours, wrong = poisoned(), cvcli.Stream("cuda:0"), 0
    sources = [on_gpu(value) for value in range(10)]
    with producer:
        target = cvcli.as_tensor(array)
    cvcli.flip(sources[0], -1, stream=ours, out=target)
    for turn, milliseconds in enumerate(RACES):
        spin(milliseconds, ours)
        cvcli.flip(sources[turn % 10], -1, stream=ours, out=target)
        with producer:
            seen = array.copy()
        producer.synchronize()
        wrong += bool((seen != turn % 10).any())
    assert wrong == 0


@pytest.mark.parametrize("named", ("CuPy", None))
def test_a_producer_may_free_what_we_read(named):
    """Its pool hands the memory out at once, to whoever asks for as much on that stream."""
    import cupy

    ours, producer, wrong = cvcli.Stream("cuda:0"), non_blocking(), 0
    for turn in range(100):
        with producer:
            array = cupy.full(SHAPE, turn, cupy.uint8)
            producer.synchronize()
            tensor = cvcli.as_tensor(array if named else Named(array, named))
            spin(2, ours)
            out = cvcli.flip(tensor, -1, stream=ours)
            del array, tensor
            spoilers = [cupy.full(SHAPE, POISON, cupy.uint8) for _ in range(4)]
        wrong += bool((out.numpy(ours) != turn).any())
        del spoilers
    assert wrong == 0


# Our own tensors


def test_read_after_write_write_after_read_and_write_after_write():
    a, b, x = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), on_gpu(POISON)
    sources, wrong = [on_gpu(value) for value in range(10)], []
    for turn, milliseconds in enumerate(RACES):
        first, second = sources[turn % 10], sources[(turn + 1) % 10]
        spin(milliseconds, a)
        cvcli.flip(first, -1, stream=a, out=x)
        after_write = cvcli.flip(x, -1, stream=b)
        spin(milliseconds, b)
        before_write = cvcli.flip(x, 0, stream=b)
        cvcli.flip(second, 0, stream=a, out=x)
        spin(milliseconds, a)
        cvcli.flip(first, 0, stream=a, out=x)
        cvcli.flip(second, -1, stream=b, out=x)
        # Read on the stream that was late, so that its write is seen if it came last.
        got = [after_write.numpy(b), before_write.numpy(b), x.numpy(a)]
        wanted = turn % 10, turn % 10, (turn + 1) % 10
        wrong += [turn for g, w in zip(got, wanted, strict=True) if (g != w).any()]
    assert not wrong


@pytest.mark.parametrize("use", ("read", "written"))
def test_a_block_dropped_in_use_is_overwritten_after_it(use):
    """It is handed out at once, to a stream that is idle."""
    engine, y, wrong, reused = engine_of("cuda:0"), on_gpu(9), 0, 0
    a, b = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    for turn in range(100):
        engine.memory.release()
        x = on_gpu(turn % 8)
        other, pointer = on_gpu(POISON), x.pointer
        spin(2, a)
        if use == "read":
            out = cvcli.flip(x, -1, stream=a)
        else:
            cvcli.flip(other, -1, stream=a, out=x)
        del x
        fresh = [Tensor.empty(SHAPE, "uint8", "HWC", "cuda:0") for _ in range(8)]
        again = [tensor for tensor in fresh if tensor.pointer == pointer]
        reused += len(again)
        for tensor in again:
            cvcli.flip(y, -1, stream=b, out=tensor)
            b.sync()
            a.sync()
            wrong += bool((tensor.numpy(b) != 9).any())
        if use == "read":
            wrong += bool((out.numpy(a) != turn % 8).any())
    assert reused > 0 and wrong == 0


def test_host_memory_on_its_way_to_the_device_is_not_refilled():
    a, b, wrong = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), 0
    pictures = [np.full(SHAPE, value, np.uint8) for value in range(10)]
    for turn in range(100):
        spin(2, a)
        late = cvcli.as_tensor(pictures[turn % 10]).to("cuda:0", stream=a)
        cvcli.as_tensor(pictures[(turn + 1) % 10]).to("cuda:0", stream=b)
        wrong += bool((late.numpy(a) != turn % 10).any())
    assert wrong == 0


def test_a_stream_may_be_deleted_before_its_work_is_done():
    b, wrong = cvcli.Stream("cuda:0"), 0
    sources = [on_gpu(value) for value in range(10)]
    for turn in range(100):
        a = cvcli.Stream("cuda:0")
        spin(2, a)
        out = cvcli.flip(sources[turn % 10], -1, stream=a)
        del a
        wrong += bool((cvcli.flip(out, -1, stream=b).numpy(b) != turn % 10).any())
    assert wrong == 0


def test_two_threads_share_a_tensor():
    """Two write one value everywhere, two read; what is read is never a mixture."""
    colours = [on_gpu(value) for value in (10, 200)]
    shared, failures = on_gpu(10), []

    def work(writes):
        stream = cvcli.Stream("cuda:0")
        for turn in range(150):
            spin(0.1, stream)
            if writes:
                cvcli.flip(colours[turn % 2], -1, stream=stream, out=shared)
            else:
                got = cvcli.flip(shared, -1, stream=stream).numpy(stream)
                failures.extend([turn] * (np.ptp(got) != 0 or got[0, 0, 0] not in (10, 200)))

    threads = [threading.Thread(target=work, args=(n % 2 == 0,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Export


def test_a_consumer_reads_our_result_after_it_is_written():
    import cupy

    ours, consumer, wrong = cvcli.Stream("cuda:0"), non_blocking(), 0
    sources = [on_gpu(value) for value in range(10)]
    out = on_gpu(POISON)
    for turn, milliseconds in enumerate(RACES[::2]):
        spin(milliseconds, ours)
        cvcli.flip(sources[turn % 10], -1, stream=ours, out=out)
        with consumer:
            seen = cupy.asarray(out.cuda()).copy()
        consumer.synchronize()
        wrong += bool((seen != turn % 10).any())
    assert wrong == 0


def test_a_batch_goes_through_without_a_wait_for_its_upload():
    import cupy

    batch = noise((4, 64, 80, 3), "uint8")
    src_cp = cupy.asarray(batch)
    src = cvcli.as_tensor(src_cp, "NHWC")
    target = cvcli.Stream()
    with target:
        out = cvcli.flip(src, -1, stream=target)
    target.sync()
    result = cupy.asarray(out.cuda())
    assert result.data.ptr == out.pointer
    assert_same(cupy.asnumpy(result), np.ascontiguousarray(batch[:, ::-1, ::-1]))


# Counts


def test_the_fast_path_has_no_barrier():
    device, x, ours = open_device("cuda:0"), on_gpu(7), cvcli.Stream("cuda:0")
    ring = [on_gpu(POISON), on_gpu(POISON)]
    cvcli.flip(x, -1, stream=ours, out=ring[0])
    cvcli.flip(ring[0], -1, stream=ours, out=ring[1])
    cvcli.flip(ring[1], -1, stream=ours, out=ring[0])
    elsewhere, spare = cvcli.Stream("cuda:0"), on_gpu(POISON)
    cvcli.flip(x, -1, stream=elsewhere, out=spare)
    with counted(device) as counts:
        # Who is done needs no wait.
        spin(50, ours)
        for turn in range(10):
            cvcli.flip(ring[turn % 2], -1, stream=ours, out=ring[1 - turn % 2])
        assert counts.barriers() == 0
        cvcli.flip(ring[0], -1, stream=elsewhere, out=spare)
        assert (counts.waits_of(elsewhere), counts.barriers()) == (1, 1)


def test_a_sentinel_costs_one_synchronisation_and_a_handle_none():
    array, device, producer = poisoned(), open_device("cuda:0"), non_blocking()
    streams = [cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")]
    with counted(device) as counts:
        for expected, tensor in (
            (1, cvcli.as_tensor(Named(array))),
            (1, cvcli.as_tensor(Named(array, producer.ptr))),
            (2, cvcli.as_tensor(array)),
        ):
            for turn in range(10):
                cvcli.flip(tensor, -1, stream=streams[turn % 2])
            assert counts.of("synchronize") == expected
