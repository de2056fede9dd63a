"""PyTorch as producer and consumer on a GPU, raced as in the tests of CuPy."""

from __future__ import annotations

import warnings

import pytest
from races.cuda import POISON, RACES, SHAPE, on_gpu, settle, spin, warm

import cvcli

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def warmed():
    warm()
    yield
    settle()


def pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    return torch


def raced(torch, inside):
    """Let a stream of PyTorch's write late and us read at once; return how often we were wrong."""
    array = torch.full(SHAPE, POISON, dtype=torch.uint8, device="cuda")
    producer, ours, wrong = torch.cuda.Stream(), cvcli.Stream("cuda:0"), 0
    for turn, milliseconds in enumerate(RACES):
        array.fill_(POISON)
        settle()
        spin(milliseconds, producer.cuda_stream)
        with torch.cuda.stream(producer):
            array.fill_(turn % 200)
            tensor = cvcli.as_tensor(array) if inside else None
        tensor = tensor or cvcli.as_tensor(array)
        out = cvcli.flip(tensor, -1, stream=ours)
        wrong += bool((out.numpy(ours) != turn % 200).any())
    return wrong


def test_a_pytorch_tensor_is_read_after_it_is_written():
    assert raced(pytorch(), inside=True) == 0


def test_a_pytorch_tensor_that_is_wrapped_outside_its_streams_block():
    """Its interface names no stream."""
    assert raced(pytorch(), inside=False) == 0


def test_a_pytorch_consumer_reads_after_our_write():
    torch = pytorch()
    ours, consumer, wrong = cvcli.Stream("cuda:0"), torch.cuda.Stream(), 0
    sources, out = [on_gpu(value) for value in range(10)], on_gpu(POISON)
    for turn, milliseconds in enumerate(RACES[::2]):
        spin(milliseconds, ours)
        cvcli.flip(sources[turn % 10], -1, stream=ours, out=out)
        with torch.cuda.stream(consumer):
            view = torch.from_dlpack(out)
            assert view.data_ptr() == out.pointer
            seen = view.clone()
        consumer.synchronize()
        wrong += bool((seen != turn % 10).any())
    assert wrong == 0


def test_work_on_pytorchs_current_stream():
    torch = pytorch()
    producer, wrong = torch.cuda.Stream(), 0
    array = torch.full(SHAPE, POISON, dtype=torch.uint8, device="cuda")
    tensor = cvcli.as_tensor(array)
    settle()
    with torch.cuda.stream(producer):
        ours = cvcli.as_stream(torch.cuda.current_stream())
        assert (ours.handle, ours.device) == (producer.cuda_stream, "cuda:0")
        cvcli.flip(tensor, -1, stream=ours)
        for turn in range(50):
            spin(2, ours)
            array.fill_(turn)
            out = cvcli.flip(tensor, -1, stream=ours)
            array.fill_(POISON)
            wrong += bool((out.numpy(ours) != turn).any())
    assert wrong == 0


def test_pytorch_takes_a_view_of_our_result():
    torch, ours = pytorch(), cvcli.Stream("cuda:0")
    out = cvcli.flip(on_gpu(7), -1, stream=ours)
    # PyTorch takes no notice of the stream that the interface names.
    ours.sync()
    view = torch.as_tensor(out.cuda(), device="cuda")
    assert view.data_ptr() == out.pointer
    assert (view == 7).all()
