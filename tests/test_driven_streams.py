"""Streams of the CPU device that run in the thread that waits for them."""

from __future__ import annotations

import threading

from conftest import noise

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.stream import Stream
from cvcli.devices import open_device

PICTURE = noise((61, 83, 3), "uint8", 1)


def driven():
    device = open_device("cpu")
    return Stream._wrap(device, device.create_driven_stream())


def test_a_driven_stream_runs_where_it_is_waited_for():
    stream, ran = driven(), []
    open_device("cpu")._streams[stream.handle].put(lambda: ran.append(threading.get_ident()))
    x = cvcli.flip(cvcli.as_tensor(PICTURE), -1, stream=stream)
    assert not stream.query() and not ran
    stream.sync()
    assert stream.query() and ran == [threading.get_ident()]
    assert (x.numpy() == PICTURE[::-1, ::-1]).all()


def test_an_event_on_a_driven_stream_is_reached_by_its_thread_and_waited_for_by_others():
    stream, other, results = driven(), Stream("cpu"), []
    x = cvcli.flip(cvcli.as_tensor(PICTURE), -1, stream=stream)
    event = stream.record()
    y = cvcli.flip(x, -1, stream=other)
    waiter = threading.Thread(target=lambda: results.append(y.numpy(other)))
    waiter.start()
    assert not event.query()
    event.sync()
    waiter.join(10)
    assert event.query() and (results[0] == PICTURE).all()


def test_host_memory_is_never_waited_for():
    # A block still in use on a stream that nobody drives yet would wait for ever.
    engine, stream = engine_of("cpu"), driven()
    source, held = engine.allocate_staging(5000), engine.allocate_staging(5000)
    engine.copy(held, source, 5000, stream)
    pointer = held.pointer
    del held
    again = engine.allocate_staging(5000)
    assert again.pointer != pointer
    stream.sync()
