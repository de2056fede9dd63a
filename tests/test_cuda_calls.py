"""Which calls of the CUDA runtime are made and in what order, told by a runtime that only counts.

No kernel runs; copies are made, so what is uploaded can be read back.
"""

from __future__ import annotations

import ctypes
import gc
from itertools import count

import numpy as np
import pytest
from conftest import assert_same, noise

import cvcli
from cvcli.core import engine as engines
from cvcli.core import interop
from cvcli.core import stream as streams
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import find
from cvcli.errors import DeviceError, ParameterError
from cvcli.ops import operators

PICTURE = noise((224, 224, 3), "uint8")
LAUNCH = "cuLaunchKernelEx"


class Runtime:
    """CuPy's bindings, as far as the device uses them; ``calls`` is what was called."""

    memcpyDefault = streamNonBlocking = eventDisableTiming = hostAllocPortable = 1  # noqa: N815
    streamCaptureModeRelaxed = 2  # noqa: N815

    class CUDARuntimeError(RuntimeError):
        status = 1

    def __init__(self):
        self.calls, self.memory, self.handles, self.current = [], {}, count(4096), 0
        self.busy = False

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            return next(self.handles)

        return call

    def named(self):
        return [call[0] for call in self.calls if call[0] != "setDevice"]

    def setDevice(self, index):  # noqa: N802
        self.calls.append(("setDevice", index))
        self.current = index

    def getDevice(self):  # noqa: N802
        return self.current

    def malloc(self, nbytes):
        self.calls.append(("malloc", nbytes))
        block = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def hostAlloc(self, nbytes, flags):  # noqa: N802
        return self.malloc(nbytes)

    def memcpyAsync(self, dst, src, nbytes, kind, stream):  # noqa: N802
        self.calls.append(("memcpyAsync", stream))
        ctypes.memmove(dst, src, nbytes)

    def memGetInfo(self):  # noqa: N802
        return 1 << 30, 1 << 31

    def eventQuery(self, event):  # noqa: N802
        self.calls.append(("eventQuery", event))
        return 600 if self.busy else 0

    def streamQuery(self, stream):  # noqa: N802
        self.calls.append(("streamQuery", stream))
        return 600 if self.busy else 0


class Driver:
    """The driver library, which launches nothing."""

    def __init__(self, runtime):
        self.runtime, self.status = runtime, 0

    def cuLaunchKernelEx(self, config, function, arguments, extra):  # noqa: N802
        self.runtime.calls.append((LAUNCH, config._obj.stream))
        return self.status

    def cuModuleLoadData(self, module, code):  # noqa: N802
        self.runtime.calls.append(("cuModuleLoadData",))
        return 0

    def cuModuleGetFunction(self, function, module, name):  # noqa: N802
        function._obj.value = 1
        return 0

    def cuGetErrorName(self, status, name):  # noqa: N802
        name._obj.value = b"CUDA_ERROR_LAUNCH_FAILED"
        return 0


@pytest.fixture
def runtime(monkeypatch, request):
    from cvcli.devices import cuda

    fake, gpus = Runtime(), getattr(request, "param", 1)
    driver = Driver(fake)
    monkeypatch.setattr(cuda, "runtime", fake)
    monkeypatch.setattr(cuda.nvrtc, "cubin", lambda kernel, compute: b"")
    for name, value in (("driver", lambda: driver), ("gpu_count", lambda: gpus)):
        monkeypatch.setattr(find, name, value)
    monkeypatch.setattr(find, "describe_gpu", lambda i: find.Gpu(i, "none", (9, 0), 1 << 31))
    monkeypatch.setattr(interop, "_engine_at", lambda index: engine_of(f"cuda:{index}"))
    monkeypatch.setattr(interop, "_device_of", lambda pointer: 0)
    monkeypatch.setattr(streams, "_DEFAULTS", {})
    for index in range(gpus):
        device = cuda.CudaDevice(index)
        monkeypatch.setitem(find._DEVICES, device.name, device)
        monkeypatch.setitem(engines._ENGINES, device.name, engines.Engine(device))
    fake.driver = driver
    yield fake
    # Nothing of this device may be left to be destroyed later, by the real runtime.
    for operator in operators():
        operator._chain.cache_clear()
    for index in range(gpus):
        del find._DEVICES[f"cuda:{index}"], engines._ENGINES[f"cuda:{index}"]
    streams._DEFAULTS.clear()
    del device
    gc.collect()


def ten(x, stream):
    for axis in (0, 1, -1, 0, 1):
        x = cvcli.invert(cvcli.flip(x, axis, stream=stream), stream=stream)
    return x


def on_gpu(index=0):
    """A tensor that we have written, with all that operators keep for it."""
    x = cvcli.posterize(cvcli.as_tensor(PICTURE).to(f"cuda:{index}"), 3)
    ten(x, None)
    return x


def test_ten_operators_are_ten_launches_and_nothing_else(runtime):
    x, stream = on_gpu(), cvcli.Stream("cuda:0")
    ten(x, stream)
    # What is done once is found done, and not asked for again.
    ten(x, stream)
    runtime.calls.clear()
    ten(x, stream)
    assert runtime.named() == [LAUNCH] * 10
    assert len(runtime.calls) == 10


def test_a_second_stream_costs_a_query_an_event_and_a_wait(runtime):
    x, one, other = on_gpu(), cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    out = Tensor.empty(PICTURE.shape, "uint8", "HWC", "cuda:0")
    y = cvcli.flip(x, 0, stream=one)
    cvcli.flip(x, 0, stream=other, out=out)
    runtime.busy = True
    runtime.calls.clear()
    cvcli.flip(y, 0, stream=other, out=out)
    names = [name for name in runtime.named() if name != "eventCreateWithFlags"]
    assert names == ["streamQuery", "eventRecord", "streamWaitEvent", LAUNCH]
    record, wait = (call for call in runtime.calls if call[0] in ("eventRecord", "streamWaitEvent"))
    assert record[2] == one.handle and wait[1:] == (other.handle, record[1])
    runtime.busy = False


def test_a_capture_is_one_undisturbed_run_of_launches(runtime):
    x, stream = on_gpu(), cvcli.Stream("cuda:0")
    runtime.calls.clear()
    with cvcli.capture(stream) as graph:
        out = ten(x, stream)
        assert LAUNCH not in runtime.named()
    names = runtime.named()
    begin, end = names.index("streamBeginCapture"), names.index("streamEndCapture")
    assert names[begin + 1 : end] == [LAUNCH] * 10
    assert names[end:] == ["streamEndCapture", "streamDestroy", "graphInstantiate", "graphDestroy"]
    captured = {call[1] for call in runtime.calls if call[0] == LAUNCH}
    assert captured == {call[1] for call in runtime.calls if call[0] == "streamBeginCapture"}
    assert stream.handle not in captured
    graph.launch(stream)
    runtime.calls.clear()
    graph.launch(stream)
    assert runtime.named() == ["graphLaunch"]
    del graph, out
    gc.collect()
    assert "graphExecDestroy" in runtime.named()


def test_kernels_are_loaded_before_the_capture_begins(runtime):
    x = on_gpu()
    runtime.calls.clear()
    with cvcli.capture(device="cuda:0") as graph:
        cvcli.rotate(x, 90)
        cvcli.gamma_contrast(x, 1.234)
    names = runtime.named()
    begin, end = names.index("streamBeginCapture"), names.index("streamEndCapture")
    assert "cuModuleLoadData" in names[:begin] and "memcpyAsync" in names[:begin]
    assert names[begin + 1 : end] == [LAUNCH] * 2 and len(graph) == 2


def test_a_capture_that_fails_is_ended(runtime):
    x = on_gpu()
    runtime.driver.status = 719
    runtime.calls.clear()
    with (
        pytest.raises(DeviceError, match="CUDA_ERROR_LAUNCH_FAILED"),
        cvcli.capture(device="cuda:0"),
    ):
        cvcli.flip(x, 0)
    names = runtime.named()
    ended = ["streamEndCapture", "graphDestroy", "streamDestroy"]
    assert names[names.index(LAUNCH) + 1 :][:3] == ended
    assert "graphInstantiate" not in names
    runtime.driver.status = 0


@pytest.mark.parametrize("runtime", (2,), indirect=True)
def test_the_current_device_of_others_is_left_alone(runtime):
    x, y = on_gpu(0), on_gpu(1)
    runtime.current = 0
    runtime.calls.clear()
    cvcli.flip(y, 0)
    assert runtime.current == 0
    assert [call[1] for call in runtime.calls if call[0] == "setDevice"][-2:] == [1, 0]
    runtime.current = 1
    cvcli.flip(x, 0), cvcli.flip(y, 0)
    assert runtime.current == 1
    runtime.driver.status = 719
    with pytest.raises(DeviceError):
        cvcli.flip(x, 0)
    assert runtime.current == 1
    runtime.driver.status = 0


class Cai:
    def __init__(self, tensor, stream):
        shape = tensor.shape
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": "|u1",
            "data": (tensor.pointer, False),
            "stream": stream,
        }


def test_a_sentinel_costs_one_wait_for_the_device(runtime):
    x = cvcli.as_tensor(Cai(on_gpu(), 1))
    stream = cvcli.Stream("cuda:0")
    runtime.calls.clear()
    ten(x, stream), ten(x, cvcli.Stream("cuda:0")), ten(x, stream)
    assert runtime.named().count("deviceSynchronize") == 1


def test_a_real_stream_is_recorded_at_once_and_held_off_after_each_use(runtime):
    x = on_gpu()
    stream = cvcli.Stream("cuda:0")
    runtime.calls.clear()
    tensor = cvcli.as_tensor(Cai(x, 7777))
    ((_, event, recorded),) = [call for call in runtime.calls if call[0] == "eventRecord"]
    assert recorded == 7777
    runtime.busy = True
    runtime.calls.clear()
    cvcli.flip(tensor, 0, stream=stream)
    waits = [call[1:] for call in runtime.calls if call[0] == "streamWaitEvent"]
    ours = [call for call in runtime.calls if call[0] == "eventRecord" and call[2] == stream.handle]
    assert (stream.handle, event) in waits and (7777, ours[-1][1]) in waits
    assert "deviceSynchronize" not in runtime.named()
    runtime.busy = False


def test_exports_tell_the_stream_and_make_consumers_wait(runtime):
    x, stream = on_gpu(), cvcli.Stream("cuda:0")
    never = Tensor.empty((4, 4), "uint8", "HW", "cuda:0")
    assert never.cuda().__cuda_array_interface__["stream"] is None
    assert x.cuda().__cuda_array_interface__["stream"] == 1
    y = cvcli.flip(x, 0, stream=stream)
    interface = y.cuda().__cuda_array_interface__
    assert (interface["stream"], interface["version"]) == (stream.handle, 3)
    assert y.__dlpack_device__() == (2, 0) and y.buffer.lent
    runtime.busy = True
    for asked, handle in ((None, 0), (1, 0), (2, 2), (4242, 4242)):
        runtime.calls.clear()
        y.__dlpack__(stream=asked)
        (wait,) = [call for call in runtime.calls if call[0] == "streamWaitEvent"]
        assert wait[1] == handle
    runtime.calls.clear()
    y.__dlpack__(stream=-1), y.__dlpack__(stream=stream.handle)
    assert "streamWaitEvent" not in runtime.named()
    for bad in (0, -2, "1"):
        with pytest.raises(ParameterError, match="stream must be None, -1 or a handle > 0"):
            y.__dlpack__(stream=bad)
    runtime.busy = False
    assert cvcli.as_tensor(y.cuda()).buffer is y.buffer


def test_a_consumer_waits_for_readers_on_other_streams_too(runtime):
    x, writer, reader = on_gpu(), cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    runtime.busy = True
    y = cvcli.flip(x, 0, stream=writer)
    cvcli.flip(y, 0, stream=reader)
    runtime.calls.clear()
    assert y.cuda().__cuda_array_interface__["stream"] == writer.handle
    waits = [call[1] for call in runtime.calls if call[0] == "streamWaitEvent"]
    assert waits == [writer.handle]
    runtime.calls.clear()
    y.__dlpack__(stream=4242)
    waits = [call[1] for call in runtime.calls if call[0] == "streamWaitEvent"]
    assert waits == [4242, 4242]
    runtime.busy = False


def test_a_dlpack_producer_gets_our_stream(runtime):
    class Theirs(Cai):
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, *, stream, max_version):
            asked.append(stream)
            return self.tensor.__dlpack__(stream=stream, max_version=max_version)

    asked, x = [], on_gpu()
    theirs = Theirs(x, None)
    del theirs.__cuda_array_interface__["stream"]
    stream = cvcli.Stream("cuda:0")
    cvcli.as_tensor(theirs)
    with stream:
        tensor = cvcli.as_tensor(theirs)
    assert asked == [1, stream.handle] and tensor.pointer == x.pointer
    assert tensor.buffer.marks.writer.stream is stream and tensor.buffer.unordered
    assert tensor.buffer.producer == cvcli.as_stream(0, "cuda:0")
    writer = cvcli.Stream("cuda:0")
    named = cvcli.as_tensor(theirs, stream=writer)
    assert named.buffer.marks.writer.stream is writer is named.buffer.producer
    assert not named.buffer.unordered


def test_arrays_go_there_and_back(runtime):
    x = cvcli.as_tensor(PICTURE).to("cuda:0")
    assert_same(x.numpy(), PICTURE)
    assert_same(np.from_dlpack(x, device="cpu").copy(), PICTURE)
    # Its own error, whatever it is: the capsule that it drops on its way must not replace it.
    with pytest.raises((BufferError, RuntimeError, ValueError)):
        np.from_dlpack(x)
    with pytest.raises(TypeError, match="must be on the CPU to be a NumPy array"):
        np.asarray(x)
