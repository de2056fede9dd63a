"""Events are recorded only when another stream or the host needs one, and never too early."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter

import numpy as np
import pytest
from conftest import assert_same, held, noise

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device

Stream = cvcli.Stream
PICTURE = noise((61, 83, 3), "uint8", 1)
BARRIERS = ("record_event", "wait_event", "synchronize", "synchronize_stream")


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def late(request, monkeypatch):
    """A device whose marks become events late, which a GPU's do by themselves."""
    device = open_device(request.param)
    monkeypatch.setattr(device, "marks_late", True)
    return request.param


@pytest.fixture
def counts(late, monkeypatch):
    """How often each of the costly calls was made."""
    device, calls = open_device(late), Counter()

    def counted(name, real):
        def call(*args, **kwargs):
            calls[name] += 1
            return real(*args, **kwargs)

        return call

    for name in BARRIERS:
        monkeypatch.setattr(device, name, counted(name, getattr(device, name)))
    return calls


def resident(device):
    """A tensor that is written and idle, and whose operators have all that they keep."""
    x = cvcli.as_tensor(PICTURE).to(device)
    out = ten(x, None)
    out.buffer.synchronize()
    x.buffer.synchronize()
    return x


def ten(x, stream):
    for axis in (0, 1, -1, 0, 1):
        x = cvcli.invert(cvcli.flip(x, axis, stream=stream), stream=stream)
    return x


def test_ten_operators_on_one_stream_need_no_barrier_and_no_event(late, counts):
    x, stream = resident(late), Stream(late)
    ten(x, stream)
    counts.clear()
    out = ten(x, stream)
    assert not any(counts[name] for name in BARRIERS)
    assert_same(out.numpy(stream), 255 - np.ascontiguousarray(PICTURE[::-1, ::-1]))


def test_the_default_stream_needs_none_either(late, counts):
    x = resident(late)
    ten(x, None)
    counts.clear()
    ten(x, None)
    assert not any(counts[name] for name in BARRIERS)


def test_a_second_stream_costs_one_event_and_one_wait(late, counts):
    x, one, other = resident(late), Stream(late), Stream(late)
    out = Tensor.empty(PICTURE.shape, "uint8", "HWC", late)
    out.buffer.synchronize()
    with held(one):
        y = ten(x, one)
        counts.clear()
        cvcli.flip(y, 0, stream=other, out=out)
        assert [counts[name] for name in BARRIERS] == [1, 1, 0, 0]
        cvcli.flip(y, 1, stream=other, out=out)
        assert [counts[name] for name in BARRIERS] == [1, 2, 0, 0]


def test_what_is_done_is_not_waited_for(late, counts):
    x, one, other = resident(late), Stream(late), Stream(late)
    out = Tensor.empty(PICTURE.shape, "uint8", "HWC", late)
    y = ten(x, one)
    one.sync()
    counts.clear()
    cvcli.flip(y, 0, stream=other, out=out)
    assert not counts["wait_event"] and not counts["synchronize"]


def test_a_late_event_still_stands_for_the_work_before_it(late):
    x, one, other = resident(late), Stream(late), Stream(late)
    cvcli.flip(x, -1, stream=other).buffer.synchronize()
    with held(one):
        y = cvcli.flip(x, -1, stream=one)
        z = cvcli.flip(y, -1, stream=other)
        time.sleep(0.03)
        assert not other.query() and not z.buffer.marks.done() and not y.buffer.marks.done()
    assert_same(z.numpy(), PICTURE)


def test_a_mark_is_found_done_though_its_stream_goes_on(late):
    x, one, gate = resident(late), Stream(late), Stream(late)
    y = cvcli.flip(x, -1, stream=one)
    while not y.buffer.marks.done():
        time.sleep(0.001)
    with held(gate):
        one.wait(gate)
        assert y.buffer.marks.done() and not one.query()
        z = cvcli.flip(y, -1, stream=one)
        assert not z.buffer.marks.done()
    assert_same(z.numpy(), PICTURE)


def test_a_busy_mark_is_passed_though_its_stream_is_never_idle(late):
    x, one, first, last = resident(late), *(Stream(late) for _ in range(3))
    # The last one's share of a GPU must outlast the first one's.
    with held(last, last, last):
        with held(first):
            one.wait(first)
            y = cvcli.flip(x, -1, stream=one)
            assert not y.buffer.marks.done()
            one.wait(last)
        until = time.monotonic() + 10
        while not y.buffer.marks.done() and time.monotonic() < until:
            time.sleep(0.001)
        assert y.buffer.marks.done() and not one.query()


def test_a_stream_dropped_early_can_still_be_waited_for(late):
    x, one, other = resident(late), Stream(late), Stream(late)
    with held(other):
        one.wait(other)
        y = cvcli.flip(x, -1, stream=one)
        alive = weakref.ref(one)
        del one
        gc.collect()
        z = cvcli.flip(y, -1, stream=Stream(late))
    assert_same(z.numpy(), PICTURE)
    for tensor in (x, y, z):
        tensor.buffer.marks.forget_done()
        tensor.buffer.marks.writer = None
    gc.collect()
    assert alive() is None


def test_a_foreign_stream_gets_its_event_at_once(late, counts):
    x, one = resident(late), Stream(late)
    theirs = cvcli.as_stream(one.handle, late)
    assert theirs == one and not theirs.lasting
    counts.clear()
    cvcli.flip(x, -1, stream=theirs)
    assert counts["record_event"] == 1


def test_two_threads_that_ask_for_one_mark_get_one_event(late):
    x, one = resident(late), Stream(late)
    for _ in range(50):
        y = cvcli.flip(x, -1, stream=one)
        mark = y.buffer.marks.writer
        seen, start = [], threading.Barrier(2)

        def ask(mark=mark, seen=seen, start=start):
            start.wait()
            seen.append(mark.event)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen[0] == seen[1] == mark.event


def test_readers_that_are_done_are_forgotten(late):
    x = resident(late)
    for _ in range(100):
        stream = Stream(late)
        cvcli.flip(x, -1, stream=stream)
        stream.sync()
    assert len(x.buffer.marks.readers) <= 9


def test_work_after_a_recorded_mark_gets_a_new_one(late):
    engine, stream = engine_of(late), Stream(late)
    first = engine.mark(stream)
    assert engine.mark(stream) is first
    assert first.event and engine.mark(stream) is not first


def test_an_event_of_the_user_parts_the_work_before_it_from_that_after(late):
    x, one, other, gate = resident(late), *(Stream(late) for _ in range(3))
    y = cvcli.flip(x, -1, stream=one)
    one.record()
    with held(gate):
        one.wait(gate)
        z = cvcli.flip(x, -1, stream=one)
        back = cvcli.flip(y, -1, stream=other)
        until = time.monotonic() + 10
        while not other.query() and time.monotonic() < until:
            time.sleep(0.001)
        assert other.query() and not one.query()
        assert y.buffer.marks.writer is not z.buffer.marks.writer
    assert_same(back.numpy(), PICTURE)


def test_work_after_an_idle_moment_is_not_taken_for_done(late):
    x, one, gate = resident(late), Stream(late), Stream(late)
    y = cvcli.flip(x, -1, stream=one)
    one.sync()
    assert y.buffer.marks.done()
    with held(gate):
        one.wait(gate)
        z = cvcli.flip(y, -1, stream=one)
        assert y.buffer.marks.writer.done() and not z.buffer.marks.done()
        back = cvcli.flip(z, -1, stream=Stream(late))
    assert_same(back.numpy(), np.ascontiguousarray(PICTURE[::-1, ::-1]))


def test_threads_that_share_marks_find_their_work_done(late):
    """Each asks for events of the others' streams while those go on."""
    x, failures = resident(late), []
    results = [cvcli.flip(x, -1) for _ in range(4)]

    def work(number):
        stream = Stream(late)
        for turn in range(60):
            mine = cvcli.flip(results[(number + turn) % 4], -1, stream=stream)
            results[number] = cvcli.flip(mine, -1, stream=stream)
            failures.extend([number] * int((mine.numpy(stream) != PICTURE).any()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
