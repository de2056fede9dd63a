"""Arrays and streams of other libraries: what is taken, what is shared, and who waits for whom."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest
from conftest import assert_same, fresh_python, held, noise

import cvcli
from cvcli.core.tensor import Tensor
from cvcli.errors import DeviceError, TensorError, UsageError

IMAGE = noise((9, 11, 3), "uint8")


@pytest.mark.parametrize(
    "shape, layout", (((9, 11), "HW"), ((9, 11, 3), "HWC"), ((2, 9, 11, 3), "NHWC"))
)
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32", "int32", "float64", "bool"))
def test_a_numpy_array_is_wrapped_as_it_is(shape, layout, dtype):
    array = np.ones(shape, dtype)
    tensor = cvcli.as_tensor(array)
    assert (tensor.shape, tensor.dtype, tensor.layout) == (shape, array.dtype, layout)
    assert (tensor.strides, tensor.pointer) == (array.strides, array.ctypes.data)
    assert (tensor.device, tensor.ndim, tensor.nbytes) == ("cpu", len(shape), array.nbytes)
    assert tensor.is_packed and not tensor.buffer.read_only
    view = np.asarray(tensor)
    assert np.shares_memory(view, array) and view.flags.writeable


def test_strides_are_kept():
    base = noise((20, 22, 3), "uint8")
    for array in (base[::2], base[3:, 5:], base[:, :7], base[::-1], base.transpose(1, 0, 2)):
        tensor = cvcli.as_tensor(array)
        assert tensor.strides == array.strides and tensor.pointer == array.ctypes.data
        assert tensor.is_packed == array.flags.c_contiguous
        assert_same(np.asarray(tensor).copy(), array.copy())
    for array in (base[::2], base[3:, 5:], base[:, :7]):
        packed = cvcli.flip(cvcli.as_tensor(array.copy()), -1).numpy()
        assert_same(cvcli.flip(cvcli.as_tensor(array), -1).numpy(), packed)
        assert_same(cvcli.as_tensor(array).numpy(), array.copy())


def test_read_only_arrays_are_inputs_only():
    array = IMAGE.copy()
    array.flags.writeable = False
    tensor = cvcli.as_tensor(array)
    assert tensor.buffer.read_only and not np.asarray(tensor).flags.writeable
    assert_same(cvcli.flip(tensor, 0).numpy(), array[::-1].copy())
    with pytest.raises(TensorError, match="read-only"):
        cvcli.flip(cvcli.as_tensor(IMAGE), 0, out=tensor)


@pytest.mark.parametrize(
    "bad",
    (
        np.zeros((3, 3), np.complex64),
        np.zeros((3, 3), "U4"),
        np.zeros((3, 3), object),
        np.zeros((3, 3), "M8[s]"),
        np.zeros((3, 3), np.dtype("u2").newbyteorder()),
        np.zeros((3, 3), [("x", "u1"), ("y", "u1")]),
        "text",
        None,
    ),
    ids=lambda bad: str(getattr(bad, "dtype", bad)),
)
def test_what_is_no_array_of_numbers_is_refused(bad):
    with pytest.raises(TensorError, match="as_tensor: dtype"):
        cvcli.as_tensor(bad)


def test_layouts_must_fit():
    for layout in ("HW", "NHWC", "HWCX"):
        with pytest.raises(TensorError, match="layout must name each of the 3 axes"):
            cvcli.as_tensor(IMAGE, layout)
    tensor = cvcli.as_tensor(IMAGE, "CHW")
    assert cvcli.as_tensor(tensor) is tensor is cvcli.as_tensor(tensor, "CHW")
    again = cvcli.as_tensor(tensor, "HWC")
    assert (again.layout, again.buffer) == ("HWC", tensor.buffer)
    with pytest.raises(TensorError, match="must have 1 to 4 channels, got 9"):
        cvcli.flip(tensor, 0)


@pytest.mark.parametrize(
    ("shape", "layout", "tip"),
    [
        ((2, 4, 6, 3), "HWCN", "array.transpose(3, 0, 1, 2).copy(), as NHWC"),
        ((2, 4, 6, 3), "NWHC", "array.transpose(0, 2, 1, 3).copy(), as NHWC"),
        ((2, 4, 3), "NWC", None),
        ((2, 4, 3), "hwc", "did you mean HWC?"),
        ((2, 4, 3), "", None),
        ((2, 4, 3), ["H", "W", "C"], None),
        ((2, 4), 2, None),
    ],
)
def test_layouts_that_are_none_are_answered_with_those_there_are(shape, layout, tip):
    array = np.zeros(shape, np.uint8)
    tensor = cvcli.as_tensor(array)
    ways = (
        lambda: cvcli.as_tensor(array, layout),
        lambda: cvcli.as_tensor(tensor, layout),
        lambda: cvcli.Tensor.empty(shape, "uint8", layout),
    )
    for way in ways:
        with pytest.raises(TensorError) as caught:
            way()
        assert str(caught.value) == (
            f"tensor: layout must be one of HW, HWC, NHW, NHWC, CHW, NCHW, got {layout!r}"
        )
        assert caught.value.tip == tip or caught.value.tip.endswith(tip)


def test_the_tip_on_a_layout_is_right():
    array = noise((11, 9, 3, 2), "uint8")
    with pytest.raises(TensorError) as caught:
        cvcli.as_tensor(array, "WHCN")
    order = re.search(r"transpose\(([\d, ]*)\)", caught.value.tip)[1]
    turned = array.transpose(*map(int, order.split(","))).copy()
    assert_same(
        cvcli.flip(cvcli.as_tensor(turned, "NHWC"), 0).numpy(),
        np.einsum("whcn->nhwc", array)[:, ::-1].copy(),
    )
    with pytest.raises(TensorError, match="each of the 4 axes") as caught:
        cvcli.as_tensor(array, "HWC")
    assert caught.value.tip == "it may be NHWC or NCHW"


def test_empty_tensors_are_of_numbers():
    for shape, dtype, said in (
        ((2, -4), "u1", "shape"),
        ((2, 4.5), "u1", "shape"),
        ((2,), "c8", ""),
    ):
        with pytest.raises(TensorError, match=f"tensor: {said or 'dtype'} must be"):
            cvcli.Tensor.empty(shape, dtype)


def test_broadcast_rows_are_refused():
    with pytest.raises(TensorError, match="side by side"):
        cvcli.flip(cvcli.as_tensor(np.broadcast_to(IMAGE[:1], IMAGE.shape)), 0)


def test_lists_and_other_array_interfaces():
    assert cvcli.as_tensor([[1.5, 0.0]]).dtype == np.float64
    other = Foreign(__array_interface__=IMAGE.__array_interface__, keep=IMAGE)
    tensor = cvcli.as_tensor(other)
    assert tensor.pointer == IMAGE.ctypes.data
    assert_same(cvcli.flip(tensor, 0).numpy(), np.ascontiguousarray(IMAGE[::-1]))


def test_views_need_their_device(device):
    tensor = cvcli.as_tensor(IMAGE).to(device)
    if device == "cpu":
        with pytest.raises(TensorError, match="cuda"):
            tensor.cuda()
        assert tensor.to("cpu") is tensor
    else:
        with pytest.raises(AttributeError, match="cpu"):
            np.asarray(tensor.__array_interface__)
    assert_same(tensor.to("cpu").numpy(), IMAGE)


class Foreign:
    """A stream of some other library, by one of the names in use."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_as_stream_takes_what_names_a_handle():
    for obj in (0, Foreign(ptr=0), Foreign(cuda_stream=0), Foreign(value=0), Foreign(handle=0)):
        assert cvcli.as_stream(obj, "cpu") == cvcli.as_stream(0, "cpu")
        assert cvcli.as_stream(obj, "cpu").handle == 0
    stream = cvcli.Stream("cpu")
    assert cvcli.as_stream(stream) is stream
    for bad in ("0", 1.5, None, Foreign(), Foreign(ptr="0")):
        with pytest.raises(UsageError, match="as_stream"):
            cvcli.as_stream(bad)


def test_as_stream_takes_the_protocol_in_both_its_forms():
    class Method:
        def __cuda_stream__(self):
            return 0, 0

    for obj in (Method(), Foreign(__cuda_stream__=(0, 0))):
        assert cvcli.as_stream(obj, "cpu").handle == 0
    for bad in (True, -1, Foreign(ptr=-5), Foreign(ptr=True)):
        with pytest.raises(UsageError, match="handle >= 0"):
            cvcli.as_stream(bad, "cpu")


def test_as_stream_keeps_the_other_stream_alive():
    """Else its library destroys the stream while ours still queues work on it."""
    foreign = Foreign(ptr=0, device_id=-1)
    alive = weakref.ref(foreign)
    stream = cvcli.as_stream(foreign, "cpu")
    del foreign
    gc.collect()
    assert alive() is not None
    del stream
    gc.collect()
    assert alive() is None


def test_as_stream_goes_where_the_other_stream_is(monkeypatch):
    import cvcli.core.stream as module

    asked = []
    cpu = module.open_device("cpu")
    monkeypatch.setattr(module, "open_device", lambda name: asked.append(name) or cpu)
    cvcli.as_stream(Foreign(ptr=0, device_id=3))
    cvcli.as_stream(Foreign(ptr=0, device_id=3), "cuda:1")
    cvcli.as_stream(Foreign(cuda_stream=0, device_index=2))
    cvcli.as_stream(Foreign(ptr=0, device_id=-1), "cpu")
    assert asked == ["cuda:3", "cuda:1", "cuda:2", "cpu"]


def test_a_missing_gpu_is_told():
    code = """
import cvcli
try:
    cvcli.Stream("cuda:63")
except Exception as error:
    print(type(error).__name__, str(error).startswith("cuda:63: "))
"""
    assert fresh_python(code, CUDA_VISIBLE_DEVICES="") == "DeviceError True"
    for name in ("gpu", "cuda:", "cuda:-1", "CPU", ""):
        with pytest.raises(DeviceError, match="device must be"):
            cvcli.as_tensor(IMAGE).to(name)


SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {}
}
"""


def spin(cupy, cycles=200_000_000):
    """Keep CuPy's current stream busy for about a tenth of a second."""
    cupy.RawKernel(SPIN, "spin")((1,), (1,), (np.int64(cycles),))


def sevens(cupy):
    """An image of sevens; the kernels used below are compiled, which takes longer than a spin."""
    spin(cupy, 1)
    array = cupy.zeros((64, 64, 3), cupy.uint8)
    array += 3
    array.fill(7)
    cvcli.flip(cvcli.as_tensor(array + 1), 0).numpy()
    cupy.cuda.Device().synchronize()
    return array


@pytest.mark.gpu
def test_cupy_arrays_go_in_and_out_without_a_copy():
    import cupy

    array = cupy.asarray(IMAGE)
    tensor = cvcli.as_tensor(array)
    assert (tensor.device, tensor.pointer) == ("cuda:0", array.data.ptr)
    assert (tensor.shape, tensor.strides, tensor.layout) == (array.shape, array.strides, "HWC")
    out = cvcli.flip(tensor, -1)
    back = cupy.asarray(out.cuda())
    assert back.data.ptr == out.pointer
    assert_same(cupy.asnumpy(back), np.ascontiguousarray(IMAGE[::-1, ::-1]))
    part = cvcli.as_tensor(array[2:, 3:])
    assert_same(cvcli.flip(part, 0).numpy(), np.ascontiguousarray(IMAGE[2:, 3:][::-1]))
    assert cupy.asarray(part.cuda()).strides == array[2:, 3:].strides


@pytest.mark.gpu
def test_the_interface_names_the_real_stream():
    x = cvcli.as_tensor(IMAGE).to("cuda:0")
    stream = cvcli.Stream("cuda:0")
    interface = cvcli.flip(x, 0, stream=stream).cuda().__cuda_array_interface__
    assert (interface["version"], interface["stream"]) == (3, stream.handle)
    assert stream.handle > 2 and int(stream) == stream.handle
    assert stream.__cuda_stream__() == (0, stream.handle)
    interface = cvcli.flip(x, 0).cuda().__cuda_array_interface__
    # Handle 0 is not allowed in version 3: the legacy default stream is 1.
    assert interface["stream"] == 1 and interface["strides"] is None
    assert (interface["shape"], interface["typestr"]) == (IMAGE.shape, "|u1")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ("blocking", "non-blocking", "default"))
def test_a_producer_is_waited_for(kind):
    import cupy

    array = sevens(cupy)
    theirs = cupy.cuda.Stream(non_blocking=kind == "non-blocking")
    theirs = cupy.cuda.Stream.null if kind == "default" else theirs
    with theirs:
        spin(cupy)
        array += 3
        tensor = cvcli.as_tensor(array)
        assert not theirs.done
    assert (cvcli.flip(tensor, 0, stream=cvcli.Stream("cuda:0")).numpy() == 10).all()


@pytest.mark.gpu
def test_the_producer_waits_for_our_use():
    import cupy

    array = sevens(cupy)
    theirs, ours = cupy.cuda.Stream(non_blocking=True), cvcli.Stream("cuda:0")
    with theirs:
        tensor = cvcli.as_tensor(array)
    with held(ours):
        out = cvcli.flip(tensor, 0, stream=ours)
        with theirs:
            array.fill(9)
        assert not theirs.done
    assert (out.numpy() == 7).all()
    theirs.synchronize()
    assert (cupy.asnumpy(array) == 9).all()


@pytest.mark.gpu
def test_a_consumer_waits_for_our_result():
    import cupy

    x = cvcli.posterize(cvcli.as_tensor(sevens(cupy)), 16)
    x.buffer.synchronize()
    ours, theirs = cvcli.Stream("cuda:0"), cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.Stream.from_external(ours):
        spin(cupy)
    out = cvcli.flip(x, 0, stream=ours)
    assert not ours.query()
    with theirs:
        copy = cupy.asarray(out.cuda()) + 1
    theirs.synchronize()
    assert (cupy.asnumpy(copy) == 8).all()


@pytest.mark.gpu
def test_work_on_a_cupy_stream():
    import cupy

    x = cvcli.posterize(cvcli.as_tensor(sevens(cupy)), 16)
    theirs = cupy.cuda.Stream(non_blocking=True)
    stream = cvcli.as_stream(theirs)
    assert (stream.handle, stream.device) == (theirs.ptr, "cuda:0")
    with theirs:
        spin(cupy)
    out = cvcli.flip(x, 0, stream=stream)
    assert not theirs.done
    assert (out.numpy() == 7).all()


@pytest.mark.gpu
def test_out_may_be_a_cupy_array():
    import cupy

    target = cupy.zeros(IMAGE.shape, cupy.uint8)
    x = cvcli.as_tensor(IMAGE).to("cuda:0")
    out = cvcli.flip(x, 0, out=cvcli.as_tensor(target), stream=cvcli.Stream("cuda:0"))
    assert isinstance(out, Tensor)
    # No synchronising by hand: CuPy's stream was made to wait for ours.
    assert_same(cupy.asnumpy(target), np.ascontiguousarray(IMAGE[::-1]))
