"""What producers of the CUDA Array Interface say, and what it costs; on the CPU device in CI."""

from __future__ import annotations

import gc
import re
import time
from collections import Counter

import numpy as np
import pytest
from conftest import ROOT, assert_same, held, noise
from PIL import Image

import cvcli
from cvcli.core import interop
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import TensorError

Stream = cvcli.Stream
IMAGE = noise((9, 11, 3), "uint8")
FLIPPED = np.ascontiguousarray(IMAGE[::-1, ::-1])


class Producer:
    """An array of some other library on a GPU."""

    def __init__(self, array, **said):
        self.array = array
        self.interface = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None if array.flags.c_contiguous else array.strides,
        } | said

    @property
    def __cuda_array_interface__(self):
        return {name: value for name, value in self.interface.items() if value != "missing"}


class WithDlpack(Producer):
    """One that offers DLPack beside it, and tells whether it was asked."""

    asked = 0

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)


@pytest.fixture
def pretended(monkeypatch):
    """The CPU device in the part of a GPU; returns the calls of it that cost something."""
    device, calls = open_device("cpu"), Counter()
    monkeypatch.setattr(interop, "_engine_at", lambda index: engine_of("cpu"))
    monkeypatch.setattr(interop, "_device_of", lambda pointer: 0)

    def counted(name, real):
        def call(*args, **kwargs):
            calls[name] += 1
            return real(*args, **kwargs)

        return call

    for name in ("record_event", "wait_event", "synchronize"):
        monkeypatch.setattr(device, name, counted(name, getattr(device, name)))
    return calls


@pytest.mark.parametrize("said", (0, 1, 2, -7, "1", 1.5, "missing"))
def test_a_default_stream_costs_one_wait_for_the_device_ever(pretended, said):
    """A sentinel, or nonsense, says nothing of who wrote: only the whole device is proof."""
    tensor = cvcli.as_tensor(Producer(IMAGE.copy(), stream=said))
    assert not pretended["synchronize"]
    streams = [Stream("cpu") for _ in range(3)]
    for turn in range(6):
        out = cvcli.flip(tensor, -1, stream=streams[turn % 3])
        assert_same(out.numpy(streams[turn % 3]), FLIPPED)
    assert pretended["synchronize"] == 1


@pytest.mark.parametrize("said", (None, -1))
def test_who_promises_that_nothing_is_pending_is_believed(pretended, said):
    tensor = cvcli.as_tensor(Producer(IMAGE.copy(), stream=said))
    assert tensor.buffer.marks.writer is None and tensor.buffer.producer is None
    assert_same(cvcli.flip(tensor, -1).numpy(), FLIPPED)
    assert not pretended["synchronize"]


def test_a_real_stream_is_marked_when_it_is_wrapped_and_waits_for_us(pretended):
    theirs, ours = Stream("cpu"), Stream("cpu")
    array = np.zeros_like(IMAGE)
    with held(theirs):
        open_device("cpu")._streams[theirs.handle].put(lambda: array.__setitem__(..., IMAGE))
        tensor = cvcli.as_tensor(Producer(array, stream=theirs.handle))
        assert pretended == {"record_event": 1}
        later = Stream("cpu")
        with held(later):
            # What they queue after that is none of ours, even if it never ends.
            theirs.wait(later)
            out = cvcli.flip(tensor, -1, stream=ours)
            ours.query()
    assert not pretended["synchronize"]
    assert_same(out.numpy(ours), FLIPPED)
    with held(ours):
        again = cvcli.flip(tensor, -1, stream=ours)
        open_device("cpu")._streams[theirs.handle].put(lambda: array.fill(9))
        time.sleep(0.03)
        assert not theirs.query()
    assert_same(again.numpy(ours), FLIPPED)
    theirs.sync()
    assert (array == 9).all()


def test_the_handle_may_die_after_the_wrap(pretended):
    theirs = Stream("cpu")
    tensor = cvcli.as_tensor(Producer(IMAGE.copy(), stream=theirs.handle))
    tensor.buffer.producer = None
    del theirs
    gc.collect()
    assert_same(cvcli.flip(tensor, -1, stream=Stream("cpu")).numpy(), FLIPPED)


def test_dlpack_is_chosen_where_the_interface_names_no_stream(pretended):
    v2 = WithDlpack(IMAGE.copy(), version=2, stream="missing")
    tensor = cvcli.as_tensor(v2)
    assert v2.asked == 1 and tensor.pointer == v2.array.ctypes.data
    cvcli.flip(tensor, -1).numpy()
    assert not pretended["synchronize"]
    theirs = Stream("cpu")
    for said in (1, None, theirs.handle):
        v3 = WithDlpack(IMAGE.copy(), stream=said)
        cvcli.as_tensor(v3)
        assert v3.asked == 0


@pytest.mark.parametrize("lacks", ("shape", "typestr", "data", "version"))
def test_an_incomplete_interface_is_made_up_for_by_dlpack(pretended, lacks):
    tensor = cvcli.as_tensor(WithDlpack(IMAGE.copy(), **{lacks: "missing"}))
    assert_same(tensor.numpy(), IMAGE)
    with pytest.raises(TensorError, match="must be complete and of version 2 or 3"):
        cvcli.as_tensor(Producer(IMAGE.copy(), **{lacks: "missing"}))
    with pytest.raises(TensorError, match="must be complete and of version 2 or 3"):
        cvcli.as_tensor(Producer(IMAGE.copy(), version=1))


def test_an_interface_that_raises(pretended):
    class Raising(WithDlpack):
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("it requires grad")

    assert_same(cvcli.as_tensor(Raising(IMAGE.copy())).numpy(), IMAGE)
    Raising.__dlpack__ = Raising.__dlpack_device__ = None
    del Raising.__dlpack__
    without = type("Without", (), {"__cuda_array_interface__": Raising.__cuda_array_interface__})
    with pytest.raises(TensorError, match=r"can't be shared \(it requires grad\)"):
        cvcli.as_tensor(without())


def test_a_refusing_dlpack_leaves_the_interface(pretended):
    class Refusing(WithDlpack):
        def __dlpack__(self, **options):
            raise BufferError("not the current device")

    tensor = cvcli.as_tensor(Refusing(IMAGE.copy(), version=2, stream="missing"))
    assert tensor.buffer.unordered
    assert_same(tensor.numpy(), IMAGE)


@pytest.mark.parametrize(
    "said, words",
    (
        ({"mask": "anything"}, "masked arrays"),
        ({"typestr": "<c8"}, "dtype must be a native number, got complex64"),
        ({"typestr": ">u2"}, "dtype must be a native number, got >u2"),
        ({"typestr": "|O"}, "dtype must be a native number, got object"),
        ({"typestr": "<M8[s]"}, "dtype must be a native number"),
        ({"typestr": "|V4"}, "dtype must be a native number"),
        ({"typestr": "<u2"}, "aligned to their 2 bytes"),
        ({"typestr": "nonsense"}, "dtype must be a number, got 'nonsense'"),
    ),
)
def test_what_the_interface_may_not_say(pretended, said, words):
    array = IMAGE.reshape(-1)[1:][:40]
    with pytest.raises(TensorError, match=words):
        cvcli.as_tensor(Producer(array, stream=None, **said))


def test_reversed_and_permuted_views_are_wrapped_and_refused_by_operators(pretended):
    base = noise((8, 10, 3), "uint8")
    for array in (base[::-1], base[:, ::-1], base.transpose(1, 0, 2)):
        for obj in (array, Producer(array, stream=None)):
            tensor = cvcli.as_tensor(obj, "HWC")
            assert tensor.strides == array.strides and tensor.pointer == array.ctypes.data
            with pytest.raises(TensorError, match="side by side") as caught:
                cvcli.flip(tensor, 0)
            assert caught.value.tip == "make a contiguous copy first"
            assert_same(tensor.numpy(), np.ascontiguousarray(array))
    wide = noise((8, 20, 3), "uint8")[:, 5:15]
    tensor = cvcli.as_tensor(Producer(wide, stream=None))
    assert_same(cvcli.flip(tensor, 0).numpy(), np.ascontiguousarray(wide[::-1]))


def test_empty_arrays_are_wrapped_and_refused_by_operators(pretended):
    empty = Producer(np.empty((0, 5, 3), np.uint8), data=(0, False), stream=None)
    for obj in (empty, np.empty((4, 0, 3), np.uint8)):
        tensor = cvcli.as_tensor(obj)
        assert tensor.nbytes == 0 and tensor.numpy().size == 0
        with pytest.raises(TensorError, match="must not be empty"):
            cvcli.flip(tensor, 0)


def test_other_dtypes_are_wrapped_and_refused_by_operators():
    for dtype in ("float16", "float64", "int8", "int64", "bool"):
        tensor = cvcli.as_tensor(np.ones((3, 4, 3), dtype))
        assert_same(tensor.numpy(), np.ones((3, 4, 3), dtype))
        with pytest.raises(TensorError, match=f"uint8, uint16, float32, got {dtype}"):
            cvcli.flip(tensor, 0)


def test_masked_arrays_are_refused():
    with pytest.raises(TensorError, match="masked arrays") as caught:
        cvcli.as_tensor(np.ma.masked_array(IMAGE, IMAGE > 9))
    assert "filled" in caught.value.tip


@pytest.mark.parametrize("mode", ("L", "LA", "RGB", "RGBA", "I;16", "I", "F"))
def test_pillow_images_come_in(mode):
    image = Image.new(mode, (11, 9), None if mode in ("LA", "RGB", "RGBA") else 7)
    tensor = cvcli.as_tensor(image)
    wanted = np.asarray(image)
    assert (tensor.shape, tensor.dtype) == (wanted.shape, wanted.dtype)
    assert tensor.layout == "HW" + "C" * (wanted.ndim - 2) and tensor.buffer.read_only
    assert_same(tensor.numpy(), np.ascontiguousarray(wanted))
    if mode == "RGB":
        image.putpixel((3, 2), (1, 2, 3))
        turned = cvcli.flip(cvcli.as_tensor(image), -1).numpy()
        assert_same(turned, np.ascontiguousarray(np.asarray(image)[::-1, ::-1]))


@pytest.mark.parametrize("mode", ("1", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV", "RGBX", "La"))
def test_other_pillow_modes_are_refused(mode):
    with pytest.raises(TensorError, match=f"mode must be one of L, LA, .* got {mode}$") as caught:
        cvcli.as_tensor(Image.new(mode, (4, 3)))
    assert "convert" in caught.value.tip


def test_numpy_and_pillow_take_tensors():
    tensor = cvcli.flip(cvcli.as_tensor(IMAGE), -1)
    assert np.shares_memory(np.asarray(tensor), tensor.__array__())
    assert_same(np.asarray(Image.fromarray(np.asarray(tensor))).copy(), FLIPPED)
    assert_same(tensor.__array__(np.float32), FLIPPED.astype(np.float32))
    assert not np.shares_memory(tensor.__array__(copy=True), np.asarray(tensor))
    with pytest.raises(ValueError, match="can't change dtype"):
        tensor.__array__(np.float32, copy=False)
    assert_same(np.array(tensor), FLIPPED)


def test_the_issues_program_on_the_cpu():
    host_array = noise((2, 61, 83, 3), "uint8")
    src_np = np.asarray(host_array)
    src = cvcli.as_tensor(src_np, "NHWC")
    target = cvcli.Stream("cpu")
    with target:
        out = cvcli.flip(src, -1, stream=target)
    target.sync()
    result = np.asarray(out)
    assert result.ctypes.data == out.pointer
    assert_same(result.copy(), np.ascontiguousarray(host_array[:, ::-1, ::-1]))


@pytest.mark.gpu
def test_the_issues_program_on_a_gpu():
    import cupy

    host_array = noise((2, 61, 83, 3), "uint8")
    src_cp = cupy.asarray(host_array)
    src = cvcli.as_tensor(src_cp, "NHWC")
    target = cvcli.Stream()
    with target:
        out = cvcli.flip(src, -1, stream=target)
    target.sync()
    result = cupy.asarray(out.cuda())
    assert result.data.ptr == out.pointer and target.device == "cuda:0"
    assert_same(cupy.asnumpy(result), np.ascontiguousarray(host_array[:, ::-1, ::-1]))


@pytest.mark.gpu
def test_the_program_of_the_readme():
    (program,) = re.findall(r"```py\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {"host_array": noise((1, 61, 83, 3), "uint8")}
    exec(program, names)
    wanted = np.ascontiguousarray(names["host_array"][:, ::-1, ::-1])
    assert_same(names["result"].get(), wanted)


@pytest.mark.gpu
def test_memory_that_the_driver_does_not_know_is_refused():
    with pytest.raises(TensorError, match="the driver knows no memory at address 0xdead0000"):
        cvcli.as_tensor(Producer(IMAGE, data=(0xDEAD0000, False), stream=None))
    empty = cvcli.as_tensor(Producer(np.empty((0, 4, 3), np.uint8), data=(0, False)))
    assert (empty.device, empty.nbytes) == ("cuda:0", 0)
    assert empty.cuda().__cuda_array_interface__["data"] == (0, False)


@pytest.mark.gpu
def test_what_the_view_names():
    """Never written by us: what the producer said; on the default stream: 1; else the handle."""
    import cupy

    # Memory used before names the stream that its new owner must follow.
    cvcli.free_memory("cuda:0")
    array = cupy.asarray(IMAGE)

    def named(tensor):
        return tensor.cuda().__cuda_array_interface__["stream"]

    assert named(cvcli.as_tensor(array)) == 1
    silent = Producer(IMAGE, data=(array.data.ptr, False), stream=None)
    assert named(cvcli.as_tensor(silent)) is None
    assert named(Tensor.empty((4, 4), "uint8", "HW", "cuda:0")) is None
    written = cvcli.flip(cvcli.as_tensor(array), 0)
    assert named(written) == 1
    stream = Stream("cuda:0")
    assert named(cvcli.flip(written, 0, stream=stream)) == stream.handle
    theirs = cupy.cuda.Stream(non_blocking=True)
    with theirs:
        assert named(cvcli.as_tensor(array)) == theirs.ptr
    for handle in (0, 1):
        assert cvcli.as_stream(handle, "cuda:0") == cvcli.Stream.default
    assert cvcli.as_stream(cupy.cuda.Stream.null) == cvcli.Stream.default


@pytest.mark.gpu
def test_streams_of_other_libraries():
    import cupy

    theirs = cupy.cuda.Stream(non_blocking=True)
    assert (cvcli.as_stream(theirs).handle, cvcli.as_stream(theirs).device) == (
        theirs.ptr,
        "cuda:0",
    )
    assert cvcli.as_stream(cupy.cuda.Stream.ptds).handle == 2
    ours = Stream("cuda:0")
    wrapped = cupy.cuda.Stream.from_external(ours)
    assert cvcli.as_stream(wrapped) == ours
    torch = pytest.importorskip("torch")
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        taken = cvcli.as_stream(stream)
        assert (taken.handle, taken.device) == (stream.cuda_stream, "cuda:0")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        array = torch.full((64, 64, 3), 7, dtype=torch.uint8, device="cuda")
        with cvcli.as_stream(side):
            out = torch.from_dlpack(cvcli.invert(cvcli.as_tensor(array)))
        assert (out + 1).cpu().numpy().max() == 249


@pytest.mark.gpu
def test_memory_and_streams_stay_on_their_device():
    x = cvcli.as_tensor(IMAGE)
    y = x.to("cuda:0")
    with pytest.raises(TensorError, match="out: device must be cuda:0, got cpu"):
        cvcli.flip(y, 0, out=Tensor.empty(IMAGE.shape, "uint8", "HWC", "cpu"))
    with pytest.raises(cvcli.errors.DeviceError, match="stream: must be on cuda:0"):
        cvcli.flip(y, 0, stream=Stream("cpu"))
