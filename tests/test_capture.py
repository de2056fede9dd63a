"""Graphs: a sequence of operators taken down once and launched as one piece of work."""

from __future__ import annotations

import gc
import time
from collections import Counter

import numpy as np
import pytest
from conftest import assert_same, held, noise

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import CvcliError, DeviceError, UsageError
from cvcli.ops import parse_chain

Stream = cvcli.Stream
PICTURE, OTHER = noise((61, 83, 3), "uint8", 1), noise((61, 83, 3), "uint8", 2)


def on(device, array):
    """Memory of our own that holds an array."""
    return cvcli.posterize(cvcli.as_tensor(array).to(device), 8)


def steps(x, **options):
    """Moves, tables, a new size, and memory that is used only in between."""
    x = cvcli.invert(cvcli.flip(x, -1, **options), **options)
    x = cvcli.pad(x, 3, 3, 2, 2, **options)
    return cvcli.brightness_contrast(cvcli.rotate(x, 90, **options), 1.2, **options)


def wanted(array):
    return steps(cvcli.as_tensor(array)).numpy()


def captured(x, device, **options):
    with cvcli.capture(device=device, **options) as graph:
        out = steps(x)
    return graph, out


def test_a_graph_runs_its_operators(device):
    x = on(device, PICTURE)
    graph, out = captured(x, device)
    assert (len(graph), graph.device) == (5, device)
    graph.launch()
    assert_same(out.numpy(), wanted(PICTURE))


def test_each_launch_reads_its_inputs_anew(device):
    x, streams = on(device, PICTURE), [Stream(device) for _ in range(3)]
    graph, out = captured(x, device)
    for turn in range(12):
        array = noise(PICTURE.shape, "uint8", turn)
        cvcli.posterize(cvcli.as_tensor(array).to(device), 8, out=x, stream=streams[turn % 2])
        graph.launch(streams[turn % 3])
        assert_same(out.numpy(streams[(turn + 1) % 3]), wanted(array))


def test_nothing_runs_until_the_launch(device):
    x, target = on(device, PICTURE), on(device, OTHER)
    with cvcli.capture(device=device) as graph:
        cvcli.flip(x, -1, out=target)
    assert_same(target.numpy(), OTHER)
    graph.launch()
    assert_same(target.numpy(), np.ascontiguousarray(PICTURE[::-1, ::-1]))


def test_a_result_can_not_be_read_before_it_is_there(device):
    graph, out = captured(on(device, PICTURE), device)
    reads = [out.numpy, lambda: cvcli.flip(out, 0, stream=Stream(device))]
    reads += (
        [lambda: np.asarray(out)]
        if device == "cpu"
        else [lambda: out.cuda().__cuda_array_interface__]
    )
    for read in (*reads, out.__dlpack__):
        with pytest.raises(UsageError, match="a graph that has not been launched") as caught:
            read()
        assert caught.value.tip == "launch the graph first"
    graph.launch()
    assert_same(out.numpy(), wanted(PICTURE))


def test_a_read_inside_the_block_is_refused(device):
    x = on(device, PICTURE)
    with pytest.raises(UsageError, match="not been launched"), cvcli.capture(device=device):
        cvcli.flip(x, -1).numpy()


def test_inputs_are_waited_for_and_outputs_too(device):
    x, writer, runner, reader = on(device, PICTURE), *(Stream(device) for _ in range(3))
    graph, out = captured(x, device)
    graph.launch()
    out.buffer.synchronize()
    with held(writer):
        cvcli.posterize(cvcli.as_tensor(OTHER).to(device), 8, out=x, stream=writer)
        graph.launch(runner)
        back = cvcli.flip(out, -1, stream=reader)
        time.sleep(0.03)
        assert not runner.query() and not reader.query()
    assert_same(back.numpy(), np.ascontiguousarray(wanted(OTHER)[::-1, ::-1]))


def test_a_launch_does_not_overtake_the_readers_of_its_last_result(device):
    x, runner, reader = on(device, PICTURE), Stream(device), Stream(device)
    graph, out = captured(x, device)
    graph.launch(runner)
    cvcli.flip(out, -1).buffer.synchronize()
    with held(reader):
        first = cvcli.flip(out, -1, stream=reader)
        cvcli.posterize(cvcli.as_tensor(OTHER).to(device), 8, out=x, stream=runner)
        graph.launch(runner)
        time.sleep(0.03)
        assert not runner.query()
    assert_same(first.numpy(), np.ascontiguousarray(wanted(PICTURE)[::-1, ::-1]))
    assert_same(out.numpy(), wanted(OTHER))


def test_the_memory_of_a_graph_stays_with_it(device):
    gc.collect()
    x = on(device, PICTURE)
    used = cvcli.memory_info(device).in_use
    graph, out = captured(x, device)
    assert cvcli.memory_info(device).in_use > used
    del x
    for turn in range(10):
        cvcli.invert(on(device, noise(PICTURE.shape, "uint8", turn)))
    graph.launch()
    assert_same(out.numpy(), wanted(PICTURE))
    result = out.numpy()
    del graph
    gc.collect()
    for turn in range(10):
        cvcli.invert(on(device, noise(PICTURE.shape, "uint8", turn)))
    assert_same(out.numpy(), result)


def test_a_dropped_graph_still_finishes(device):
    x, guard = on(device, PICTURE), Stream(device)
    graph, out = captured(x, device)
    handles = len(open_device("cpu")._graphs)
    with held(guard):
        stream = Stream(device)
        stream.wait(guard)
        graph.launch(stream)
        del graph, x
        gc.collect()
    assert_same(out.numpy(), wanted(PICTURE))
    assert device != "cpu" or len(open_device("cpu")._graphs) == handles - 1


def test_tables_made_meanwhile_serve_others_at_once(device):
    """What an operator keeps on the device is uploaded when it is captured, not at the launch."""
    x = on(device, PICTURE)
    with cvcli.capture(device=device) as graph:
        out = cvcli.gamma_contrast(x, 1.37)
    same = cvcli.gamma_contrast(x, 1.37, stream=Stream(device)).numpy()
    assert_same(same, cvcli.gamma_contrast(cvcli.as_tensor(PICTURE), 1.37).numpy())
    graph.launch()
    assert_same(out.numpy(), same)
    assert len(graph) == 1


@pytest.mark.gpu
def test_an_upload_that_the_graph_overwrites_is_made_again():
    x = on("cuda:0", PICTURE)
    with cvcli.capture(device="cuda:0") as graph:
        y = cvcli.as_tensor(OTHER).to("cuda:0")
        out = cvcli.flip(y, -1)
        cvcli.flip(x, 0, out=y)
    assert len(graph) == 3
    for _ in range(3):
        graph.launch()
        assert_same(out.numpy(), np.ascontiguousarray(OTHER[::-1, ::-1]))
        assert_same(y.numpy(), np.ascontiguousarray(PICTURE[::-1]))


def test_an_error_inside_leaves_everything_as_it_was(device):
    x, stream = on(device, PICTURE), Stream(device)
    with pytest.raises(ZeroDivisionError), cvcli.capture(stream) as graph:
        out = cvcli.flip(x, -1)
        raise ZeroDivisionError
    with pytest.raises(UsageError, match="ended well"):
        graph.launch()
    with pytest.raises(UsageError, match="not been launched"):
        out.numpy()
    assert not engine_of(device).recorders and Stream.current is not stream
    assert_same(cvcli.flip(x, 0, stream=stream).numpy(), np.ascontiguousarray(PICTURE[::-1]))
    with pytest.raises(CvcliError, match="crop: the rectangle"), cvcli.capture(stream):
        cvcli.crop(x, 10_000, 10)
    graph, out = captured(x, device)
    graph.launch(stream)
    assert_same(out.numpy(), wanted(PICTURE))


def test_misuse_is_refused(device):
    x, stream, other = on(device, PICTURE), Stream(device), Stream(device)
    with pytest.raises(UsageError, match="nothing was queued"), cvcli.capture(stream):
        pass
    with pytest.raises(UsageError, match="nothing was queued"), cvcli.capture(stream):
        cvcli.flip(x, 0, stream=other).numpy(other)
    with cvcli.capture(stream) as graph:
        out = cvcli.flip(x, 0)
        with pytest.raises(UsageError, match="captured already"), cvcli.capture(stream):
            pass
        with pytest.raises(UsageError, match="ended well"):
            graph.launch()
    with cvcli.capture(stream) as second:
        cvcli.flip(x, 1)
        with pytest.raises(UsageError, match="inside another"):
            graph.launch(stream)
        with pytest.raises(UsageError, match="not been launched"):
            cvcli.flip(out, 1)
    graph.launch(), second.launch()
    if device != "cpu":
        with pytest.raises(DeviceError, match="stream: must be on"):
            graph.launch(Stream("cpu"))


def test_two_graphs_follow_each_other(device):
    x = on(device, PICTURE)
    first, middle = captured(x, device)
    first.launch(Stream(device))
    second, out = captured(middle, device)
    streams = [Stream(device) for _ in range(2)]
    for turn in range(6):
        array = noise(PICTURE.shape, "uint8", turn)
        cvcli.posterize(cvcli.as_tensor(array).to(device), 8, out=x)
        first.launch(streams[turn % 2])
        second.launch(streams[(turn + 1) % 2])
        assert_same(out.numpy(), wanted(wanted(array)))


def test_a_chain_beside_work_on_another_stream(device):
    x, other = on(device, PICTURE), Stream(device)
    chain = parse_chain("flip --axis -1 | invert | posterize --bits 3")
    with cvcli.capture(device=device) as graph:
        out = cvcli.apply(chain, x)
        mine = cvcli.flip(x, 0, stream=other)
        assert_same(mine.numpy(other), np.ascontiguousarray(PICTURE[::-1]))
    graph.launch()
    assert_same(out.numpy(), cvcli.apply(chain, cvcli.as_tensor(PICTURE)).numpy())


def counted(calls, name, real):
    def call(*args, **kwargs):
        calls[name] += 1
        return real(*args, **kwargs)

    return call


def test_a_launch_is_one_call_without_events(device, monkeypatch):
    opened, calls = open_device(device), Counter()
    monkeypatch.setattr(opened, "marks_late", True)
    x, stream = on(device, PICTURE), Stream(device)
    graph, _ = captured(x, device)
    graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    for name in ("launch", "copy", "launch_graph", "record_event", "wait_event", "synchronize"):
        monkeypatch.setattr(opened, name, counted(calls, name, getattr(opened, name)))
    graph.launch(stream)
    assert calls == {"launch_graph": 1}
    stream.sync()


@pytest.mark.gpu
def test_foreign_arrays_in_a_graph():
    import cupy

    source, target = cupy.asarray(PICTURE), cupy.zeros(PICTURE.shape, cupy.uint8)
    theirs = cupy.cuda.Stream(non_blocking=True)
    with theirs:
        x, out = cvcli.as_tensor(source), cvcli.as_tensor(target)
    with cvcli.capture() as graph:
        cvcli.invert(cvcli.flip(x, -1), out=out)
    for turn in range(20):
        array = noise(PICTURE.shape, "uint8", turn)
        with theirs:
            source.set(array)
            again = cvcli.as_tensor(source)
        # Their write is known to us through the new wrapper only.
        stream = Stream("cuda:0")
        stream.wait(cvcli.as_stream(theirs))
        graph.launch(stream)
        with theirs:
            got = target.copy()
        theirs.synchronize()
        assert_same(cupy.asnumpy(got), 255 - np.ascontiguousarray(array[::-1, ::-1]))
        del again


@pytest.mark.gpu
def test_a_graph_of_many_small_steps_is_cheaper_to_launch():
    x, stream = on("cuda:0", PICTURE), Stream("cuda:0")

    def ten(x):
        for _ in range(10):
            x = cvcli.flip(x, -1, stream=stream)
        return x

    with cvcli.capture(stream) as graph:
        out = ten(x)
    ten(x), graph.launch(stream), stream.sync()

    def cost(work):
        best = float("inf")
        for _ in range(20):
            stream.sync()
            began = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - began)
        return best

    assert cost(lambda: graph.launch(stream)) < cost(lambda: ten(x)) / 2
    assert_same(out.numpy(), PICTURE)


def test_the_cpu_graph_takes_arguments_as_they_were():
    x, y = cvcli.as_tensor(PICTURE), cvcli.as_tensor(OTHER)
    with cvcli.capture(device="cpu") as graph:
        first, second = cvcli.flip(x, 0), cvcli.flip(y, 0)
    cvcli.flip(cvcli.as_tensor(OTHER), 0)
    graph.launch()
    assert_same(first.numpy(), np.ascontiguousarray(PICTURE[::-1]))
    assert_same(second.numpy(), np.ascontiguousarray(OTHER[::-1]))
    assert isinstance(first, Tensor)
