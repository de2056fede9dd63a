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


def test_a_pytorch_tensor_is_read_after_it_is_written():
    torch = pytorch()
    array = torch.full(SHAPE, POISON, dtype=torch.uint8, device="cuda")
    producer, ours, wrong = torch.cuda.Stream(), cvcli.Stream("cuda:0"), 0
    array.fill_(3)
    for turn, milliseconds in enumerate(RACES):
        array.fill_(POISON)
        settle()
        spin(milliseconds, producer.cuda_stream)
        with torch.cuda.stream(producer):
            array.fill_(turn % 200)
        out = cvcli.flip(cvcli.as_tensor(array), -1, stream=ours)
        wrong += bool((out.numpy(ours) != turn % 200).any())
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
