"""Order: streams, events, and the barriers that the engine puts between them."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_same, held, noise, view

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.stream import default_stream
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import DeviceError, UsageError

Stream, Event = cvcli.Stream, cvcli.Event


def on(device, array):
    """A pooled tensor that holds an array."""
    src = cvcli.as_tensor(array).to(device)
    out = cvcli.posterize(src, 16)
    # A GPU's kernels load on first use, which must not eat the time that a stream is held.
    cvcli.flip(out, -1).buffer.synchronize()
    return out


def stays_busy(stream):
    """Whether a stream waits; one that doesn't is idle, and has done its harm, by then."""
    time.sleep(0.03)
    return not stream.query()


def half_turn(array):
    return np.ascontiguousarray(array[::-1, ::-1])


PICTURE, OTHER = noise((61, 83, 3), "uint8", 1), noise((61, 83, 3), "uint8", 2)


def test_read_after_write(device):
    a, b, x = Stream(device), Stream(device), on(device, PICTURE)
    with held(a):
        turned = cvcli.flip(x, -1, stream=a)
        back = cvcli.flip(turned, -1, stream=b)
        assert stays_busy(b)
    assert_same(back.numpy(), PICTURE)
    assert_same(turned.numpy(), half_turn(PICTURE))


def test_write_after_read(device):
    a, b = Stream(device), Stream(device)
    x, y = on(device, PICTURE), on(device, OTHER)
    with held(a):
        turned = cvcli.flip(x, -1, stream=a)
        cvcli.flip(y, -1, stream=b, out=x)
        assert stays_busy(b)
    assert_same(turned.numpy(), half_turn(PICTURE))
    assert_same(x.numpy(), half_turn(OTHER))


def test_write_after_write(device):
    a, b = Stream(device), Stream(device)
    x, y, target = on(device, PICTURE), on(device, OTHER), on(device, PICTURE)
    with held(a):
        cvcli.flip(x, -1, stream=a, out=target)
        cvcli.flip(y, -1, stream=b, out=target)
        assert stays_busy(b)
    assert_same(target.numpy(), half_turn(OTHER))


def test_two_reads_do_not_wait_for_each_other(device):
    a, b, x = Stream(device), Stream(device), on(device, PICTURE)
    cvcli.flip(x, -1, stream=b).buffer.synchronize()
    with held(a):
        slow = cvcli.flip(x, -1, stream=a)
        quick = cvcli.flip(x, -1, stream=b)
        b.sync()
    assert_same(slow.numpy(), half_turn(PICTURE))
    assert_same(quick.numpy(), half_turn(PICTURE))


def test_memory_dropped_while_it_is_read_is_not_overwritten(device):
    engine = engine_of(device)
    engine.memory.release()
    a, b, y = Stream(device), Stream(device), on(device, OTHER)
    x = on(device, PICTURE)
    pointer = x.pointer
    with held(a):
        turned = cvcli.flip(x, -1, stream=a)
        del x
        gc.collect()
        fresh = [Tensor.empty(PICTURE.shape, "uint8", "HWC", device) for _ in range(8)]
        (reused,) = (tensor for tensor in fresh if tensor.pointer == pointer)
        cvcli.flip(y, -1, stream=b, out=reused)
        assert stays_busy(b)
    assert_same(turned.numpy(), half_turn(PICTURE))
    assert_same(reused.numpy(), half_turn(OTHER))


@pytest.mark.parametrize("shape", ((700, 900, 3), (61, 83, 1)))
def test_ping_pong_over_four_streams(device, shape):
    picture = noise(shape, "uint8")
    streams, x = [Stream(device) for _ in range(4)], cvcli.as_tensor(picture).to(device)
    for turn in range(50):
        x = cvcli.flip(x, turn % 3 - 1, stream=streams[turn % 4])
    # 17 half turns, 17 reversals of the rows and 16 of the columns: one of the columns is left.
    wanted = picture
    for turn in range(50):
        wanted = np.flip(wanted, ((0, 1), (0,), (1,))[turn % 3])
    assert_same(x.numpy(), np.ascontiguousarray(wanted))


def test_ping_pong_between_two_buffers(device):
    """Every step reads what another stream wrote and overwrites what a third one reads."""
    picture, rng = noise((300, 401, 3), "uint8"), random.Random(1)
    streams = [Stream(device) for _ in range(4)]
    x, y = on(device, picture), on(device, picture)
    for _ in range(500):
        cvcli.flip(x, -1, stream=rng.choice(streams), out=y)
        x, y = y, x
    assert_same(x.numpy(), picture)


def test_many_threads_each_on_its_stream(device):
    shared, failures = on(device, PICTURE), []

    def work(seed):
        mine = noise((40 + seed, 50, 3), "uint8", seed)
        with Stream(device):
            for _ in range(40):
                x = cvcli.flip(cvcli.flip(cvcli.as_tensor(mine).to(device), -1), -1)
                failures.extend([seed] * int((x.numpy() != mine).any()))
                turned = cvcli.flip(shared, -1).numpy()
                failures.extend([seed] * int((turned != half_turn(PICTURE)).any()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_stream_runs_in_order(device):
    a = Stream(device)
    # A kernel is compiled at its first use, which may take as long as the stream is held.
    cvcli.flip(on(device, PICTURE), -1)
    with held(a):
        first, x = a.record(), on(device, PICTURE)
        cvcli.flip(x, -1, stream=a)
        last = a.record()
        assert stays_busy(a) and not first.query() and not last.query()
    last.sync()
    assert first.query() and last.query()
    a.sync()
    assert a.query()


@pytest.mark.parametrize("by", ("event", "stream"))
def test_one_stream_waits_for_another(device, by):
    a, b = Stream(device), Stream(device)
    with held(a):
        b.wait(a.record() if by == "event" else a)
        done = b.record()
        assert stays_busy(b) and not done.query()
    b.sync()
    assert done.query()


def test_a_wait_keeps_the_recording_it_was_queued_for(device):
    a, b, c = (Stream(device) for _ in range(3))
    event = Event(device).record(a)
    a.sync()
    with held(b):
        c.wait(event)
        event.record(b)
        c.sync()
        assert c.query() and not event.query()
    event.sync()


def test_an_event_is_complete_until_it_is_recorded(device):
    event = Event(device)
    assert event.query() and event.device == device
    event.sync()
    Stream(device).wait(event)
    assert event.record(Stream(device)) is event


def test_elapsed(device):
    a = Stream(device)
    start, early = a.record(timing=True), time.perf_counter()
    with held(a):
        time.sleep(0.02)
    end = a.record(timing=True)
    end.sync()
    spent = (time.perf_counter() - early) * 1e3
    assert 10 < end.elapsed(start) < spent + 50
    for one, other in ((a.record(), start), (end, a.record())):
        with pytest.raises(UsageError, match="timing=True"):
            one.elapsed(other)


def test_an_event_stays_on_its_device():
    event = Event("cpu")
    stream = Stream("cpu")
    stream._device = type("Elsewhere", (), {"name": "cuda:99", "destroy_stream": None})()
    with pytest.raises(DeviceError, match=r"event: .*cpu.*cuda:99"):
        event.record(stream)


def test_with_makes_a_stream_current(device):
    outside, a, b = Stream.current, Stream(device), Stream(device)
    with a as entered:
        assert entered is a and Stream.current is a
        with b:
            assert Stream.current is b
            with a:
                assert Stream.current is a
            seen = []
            thread = threading.Thread(target=lambda: seen.append(Stream.current))
            thread.start()
            thread.join()
            assert seen == [outside]
            x = on(device, PICTURE)
            with held(b):
                out = cvcli.flip(x, -1)
                assert out.buffer.marks.writer.stream is b
        assert Stream.current is a
    assert Stream.current == outside == Stream.default


def test_with_is_left_in_order():
    a, b = Stream("cpu"), Stream("cpu")
    with pytest.raises(UsageError, match="reverse order"):
        a.__exit__(None, None, None)
    with a:
        b.__enter__()
        with pytest.raises(UsageError, match="reverse order"):
            a.__exit__(None, None, None)
        assert Stream.current is b
        b.__exit__(None, None, None)


def test_an_exception_leaves_the_block():
    before = Stream.current
    with pytest.raises(ZeroDivisionError), Stream("cpu"):
        raise ZeroDivisionError
    assert Stream.current is before


def test_a_stream_may_be_dropped_early(device):
    x = on(device, PICTURE)
    a, guard = Stream(device), Stream(device)
    with held(guard):
        a.wait(guard)
        out = cvcli.flip(x, -1, stream=a)
        done = a.record()
        del a
        gc.collect()
        time.sleep(0.03)
        assert not done.query()
    done.sync()
    assert_same(out.numpy(), half_turn(PICTURE))


def test_dropped_streams_and_events_are_gone():
    cpu = open_device("cpu")
    gc.collect()
    threads, streams, events = threading.active_count(), len(cpu._streams), len(cpu._events)
    for _ in range(50):
        Stream("cpu").record().sync()
    gc.collect()
    until = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= threads
    assert len(cpu._streams) <= streams and len(cpu._events) <= events + 1


def test_a_failure_in_a_stream_is_told_once():
    a = Stream("cpu")
    open_device("cpu")._streams[a.handle].put(lambda: 1 // 0)
    with pytest.raises(DeviceError, match="cpu: "):
        a.sync()
    a.sync()
    assert_same(cvcli.flip(cvcli.as_tensor(PICTURE), -1, stream=a).numpy(), half_turn(PICTURE))


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_many_calls_do_not_grow(device):
    engine, rng = engine_of(device), random.Random(7)
    streams = [Stream(device), Stream(device)]
    block = on(device, noise((400, 400, 3), "uint8"))

    def calls(count):
        for turn in range(count):
            height, width = rng.randint(1, 400), rng.randint(1, 400)
            part = view(block, (height, width, 3), block.strides)
            cvcli.flip(part, -1, stream=streams[turn % 2])
            if turn % 64 == 0:
                streams[turn // 64 % 2].sync()

    calls(4000)
    before = resident()
    calls(16000)
    for stream in streams:
        stream.sync()
    assert resident() - before < 48 << 20
    for pool in (engine.memory, engine.staging):
        assert 0 <= pool.held <= pool.limit and 0 <= pool.used <= 256 << 20
    assert len(block.buffer.marks.readers) <= 8


def test_a_foreign_array_lives_until_it_is_used():
    a = Stream("cpu")
    array = PICTURE.copy()
    alive = weakref.ref(array)
    with held(a):
        out = cvcli.flip(cvcli.as_tensor(array), -1, stream=a)
        del array
        gc.collect()
        cvcli.invert(cvcli.as_tensor(OTHER)).buffer.synchronize()
        assert alive() is not None
    assert_same(out.numpy(), half_turn(PICTURE))
    a.sync()
    cvcli.invert(cvcli.as_tensor(OTHER)).buffer.synchronize()
    gc.collect()
    assert alive() is None


def test_a_view_of_a_result_keeps_its_memory():
    view = np.asarray(cvcli.flip(cvcli.as_tensor(PICTURE), -1))
    for _ in range(20):
        cvcli.flip(cvcli.as_tensor(OTHER), -1, stream=Stream("cpu")).numpy()
        assert_same(view.copy(), half_turn(PICTURE))


def test_reading_through_numpy_waits():
    big = noise((3000, 2000, 3), "float32")
    for _ in range(5):
        out = cvcli.gamma_contrast(cvcli.as_tensor(big), 0, gain=0, stream=Stream("cpu"))
        assert not np.asarray(out).any()


def test_default_stream():
    assert default_stream("cpu") is default_stream("cpu") and int(default_stream("cpu")) == 0
    assert Stream("cpu") != Stream("cpu")
    assert len({Stream("cpu"), Stream("cpu"), default_stream("cpu")}) == 3
    with pytest.raises(DeviceError, match="cpu"):
        default_stream("cpu").__cuda_stream__()
