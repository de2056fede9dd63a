"""What every operator takes and refuses as its operands: outputs, streams, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import (
    CASES,
    assert_same,
    every,
    planned,
    run,
    sure,
)

import cvcli
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import DeviceError, ParameterError, TensorError, UsageError
from cvcli.ops import operators

OPERATORS = [pytest.param(op, id=op.name) for op in operators()]


@pytest.mark.parametrize("operator, case", CASES)
def test_out_takes_the_result(operator, case, device):
    for _, array in every(operator, case, sizes=((17, 11), (61, 83))):
        wanted = run(operator, array, case, device)
        layout = planned(operator, case, array).layout
        out = Tensor.empty(wanted.shape, wanted.dtype.name, layout, device)
        src = cvcli.as_tensor(array).to(device)
        assert operator(src, **case, out=out) is out
        assert_same(out.numpy(), wanted)


@pytest.mark.parametrize("operator, case", CASES)
def test_out_that_does_not_fit_is_refused(operator, case):
    array = sure(operator, case)
    target = planned(operator, case, array)
    (first, *rest), dtype, layout = target.shape, target.dtype, target.layout
    src = cvcli.as_tensor(array)
    wrong = [
        (np.zeros((first + 1, *rest), dtype), layout, "shape"),
        (np.zeros(target.shape, np.int16), layout, "dtype"),
        (np.zeros(target.shape, dtype), "CHW" if layout == "HWC" else "HWC", "layout"),
        (np.zeros((1, *target.shape), dtype), f"N{layout}", "shape"),
    ]
    for memory, named, word in wrong:
        with pytest.raises(TensorError, match=f"out: {word}"):
            operator(src, **case, out=cvcli.as_tensor(memory, named))
        assert not memory.any()
    frozen = np.zeros(target.shape, dtype)
    frozen.flags.writeable = False
    with pytest.raises(TensorError, match=r"out: .*read-only"):
        operator(src, **case, out=cvcli.as_tensor(frozen, layout))


@pytest.mark.parametrize("operator, case", CASES)
def test_out_that_overlaps_is_refused(operator, case):
    first = sure(operator, case)
    wanted = run(operator, first, case)
    layout, size = planned(operator, case, first).layout, wanted.itemsize
    memory = np.zeros(first.nbytes + wanted.nbytes + size, np.uint8)
    array = memory[: first.nbytes].view(first.dtype).reshape(first.shape)
    array[...] = first
    # It shares one sample with the input at most; one sample later it shares none.
    free = -(-first.nbytes // size) * size
    for at, refused in ((0, True), (free - size, True), (free, False)):
        part = memory[at : at + wanted.nbytes].view(wanted.dtype).reshape(wanted.shape)
        out = cvcli.as_tensor(part, layout)
        if refused:
            with pytest.raises(TensorError, match="out: must not overlap"):
                operator(cvcli.as_tensor(array), **case, out=out)
        else:
            assert_same(operator(cvcli.as_tensor(array), **case, out=out).numpy(), wanted)


@pytest.mark.parametrize("operator, case", CASES)
def test_other_streams_give_the_same(operator, case, device):
    array = sure(operator, case)
    wanted = run(operator, array, case, device)
    src, stream = cvcli.as_tensor(array).to(device), cvcli.Stream(device)
    assert_same(operator(src, **case, stream=stream).numpy(), wanted)
    with stream:
        assert_same(operator(src, **case).numpy(), wanted)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_stream_of_another_device_is_refused(operator, device):
    case = operator.cases[0]
    src = cvcli.as_tensor(sure(operator, case)).to(device)
    foreign = cvcli.Stream._wrap(open_device("cpu"), 0)
    foreign._device = type("Elsewhere", (), {"name": "cuda:99"})()
    with pytest.raises(DeviceError, match="stream"):
        operator(src, **case, stream=foreign)


def bad_tensors():
    image = np.zeros((9, 11, 3), np.uint8)
    yield image.astype(np.float64), "HWC", "dtype"
    yield image.astype(np.int32), "HWC", "dtype"
    yield image.astype(np.bool_), "HWC", "dtype"
    yield image[None], "NWHC", "layout"
    yield image, "WHC", "layout"
    yield np.zeros((9, 11, 5), np.uint8), "HWC", "channels"
    yield np.zeros((9, 11, 0), np.uint8), "HWC", "channels"
    yield np.zeros((0, 11, 3), np.uint8), "HWC", "empty"
    yield np.zeros((9, 0, 3), np.float32), "HWC", "empty"
    yield np.zeros((0, 9, 11, 3), np.uint8), "NHWC", "empty"
    yield np.zeros((9, 11, 6), np.uint8)[..., ::2], "HWC", "side by side"
    yield np.zeros((9, 22, 3), np.uint8)[:, ::2], "HWC", "side by side"
    yield image[:, ::-1], "HWC", "side by side"
    yield image[::-1], "HWC", "side by side"
    yield image.transpose(1, 0, 2), "HWC", "side by side"


@pytest.mark.parametrize("operator", OPERATORS)
def test_operands_of_the_wrong_kind_are_refused_before_a_launch(operator, monkeypatch):
    def no_launch(*_):
        raise AssertionError("launched")

    monkeypatch.setattr(type(open_device("cpu")), "launch", no_launch)
    for array, layout, word in bad_tensors():
        with pytest.raises(TensorError, match=word):
            operator(cvcli.as_tensor(array, layout), **operator.cases[0])
    if not operator.planar:
        with pytest.raises(ParameterError, match="layout must be interleaved"):
            operator(cvcli.as_tensor(np.zeros((3, 9, 11), np.uint8), "CHW"), **operator.cases[0])
    with pytest.raises(AssertionError, match="launched"):
        operator(cvcli.as_tensor(sure(operator, operator.cases[0])), **operator.cases[0])


def test_what_is_no_tensor_and_no_chain_is_named():
    array = np.zeros((9, 11, 3), np.uint8)
    src = cvcli.as_tensor(array)
    with pytest.raises(TensorError, match=r"operand: must be a cvcli\.Tensor, got ndarray"):
        cvcli.invert(array)
    with pytest.raises(TensorError, match=r"out: must be a cvcli\.Tensor, got ndarray"):
        cvcli.invert(src, out=array.copy())
    with pytest.raises(UsageError, match="chain: must be a chain of operators, got str"):
        cvcli.apply("invert", src)


@pytest.mark.parametrize("value", [{}, {5}, np.float32, [[]], slice(3)], ids=repr)
def test_a_parameter_of_any_type_is_refused_by_name(value):
    src = cvcli.as_tensor(np.zeros((9, 11, 3), np.uint8))
    with pytest.raises(ParameterError, match="median-blur: size must be an integer"):
        cvcli.median_blur(src, value)
    with pytest.raises(ParameterError, match="morphology: operation must be one of"):
        cvcli.morphology(src, operation=value)


def test_a_dtype_may_be_numpy_s_own():
    src = cvcli.as_tensor(np.full((9, 11, 3), 7, np.uint8))
    for dtype in (np.uint16, np.dtype("float32")):
        wanted = np.full((9, 11, 3), 7, dtype)
        assert_same(cvcli.convertto(src, dtype).numpy(), wanted)
    with pytest.raises(ParameterError, match="convertto: dtype must be one of"):
        cvcli.convertto(src, np.float64)


@pytest.mark.parametrize("stream", ["cpu", 0, object()], ids=lambda value: type(value).__name__)
def test_what_is_no_stream_is_named(stream):
    src = cvcli.as_tensor(np.zeros((9, 11, 3), np.uint8))
    with pytest.raises(UsageError, match=r"stream: must be a cvcli\.Stream, got \w+$") as caught:
        cvcli.invert(src, stream=stream)
    assert caught.value.tip == "wrap the stream with cvcli.as_stream"
    with pytest.raises(UsageError, match=r"stream: must be a cvcli\.Stream or cvcli\.Event, got"):
        cvcli.Stream("cpu").wait(stream)


def test_a_list_is_told_as_it_was_given():
    src = cvcli.as_tensor(np.zeros((9, 11, 3), np.uint8))
    with pytest.raises(ParameterError, match="value must be 1 to 4 values, got '1,2,3,4,5'"):
        cvcli.pad(src, value="1,2,3,4,5")
    with pytest.raises(ParameterError, match="order must be numbers from 0 to 3, got '0,7'"):
        cvcli.channelreorder(src, "0,7")
