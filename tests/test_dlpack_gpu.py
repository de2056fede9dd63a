"""DLPack on a GPU: who waits for whom, told apart by work that takes long."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
from conftest import assert_same, held, noise

import cvcli
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import ParameterError, TensorError

pytestmark = pytest.mark.gpu
IMAGE = noise((9, 11, 3), "uint8")
FLIPPED = np.ascontiguousarray(IMAGE[::-1, ::-1])


def spinning(torch, cycles=200_000_000):
    """Keep PyTorch's current stream busy for about a tenth of a second."""
    torch.cuda._sleep(cycles)


def sevens(torch):
    """An image of sevens; the kernels used below are loaded, which may wait for the device."""
    spinning(torch, 1)
    warm = torch.full((64, 64, 3), 1, dtype=torch.uint8, device="cuda")
    warm.add_(3).fill_(9)
    (warm + 1).cpu()
    array = torch.full((64, 64, 3), 7, dtype=torch.uint8, device="cuda")
    cvcli.flip(cvcli.invert(cvcli.posterize(cvcli.as_tensor(array), 8)), 0).numpy()
    torch.cuda.synchronize()
    return array


@pytest.mark.parametrize("where", ("side stream", "default stream"))
def test_a_torch_stream_that_is_named_spares_the_device_wait(where, monkeypatch):
    torch = pytest.importorskip("torch")
    theirs = sevens(torch)
    device, ours = open_device("cuda:0"), cvcli.Stream("cuda:0")
    waits = []
    monkeypatch.setattr(device, "synchronize", lambda: waits.append(1))
    side = torch.cuda.Stream() if where == "side stream" else torch.cuda.default_stream()
    with torch.cuda.stream(side):
        spinning(torch)
        theirs.add_(3)
        tensor = cvcli.as_tensor(theirs, stream=side)
        assert not side.query()
        out = cvcli.flip(tensor, 0, stream=ours)
        # The reverse: what PyTorch writes next must not reach our input.
        theirs.fill_(99)
    assert (out.numpy() == 10).all() and not waits
    assert tensor.pointer == theirs.data_ptr()


@pytest.mark.parametrize("consumer", ("default", "side"))
def test_a_torch_consumer_waits_for_our_writer(consumer):
    torch = pytest.importorskip("torch")
    x = cvcli.as_tensor(sevens(torch))
    ours = cvcli.Stream("cuda:0")
    out = cvcli.invert(x, stream=ours)
    ours.sync()
    side = torch.cuda.Stream() if consumer == "side" else torch.cuda.default_stream()
    with torch.cuda.stream(torch.cuda.ExternalStream(ours.handle)):
        spinning(torch)
    cvcli.posterize(x, 8, stream=ours, out=out)
    with torch.cuda.stream(side):
        theirs = torch.from_dlpack(out)
        copied = theirs + 1
    assert not ours.query() and theirs.data_ptr() == out.pointer
    side.synchronize()
    assert (copied.cpu().numpy() == 8).all()


def test_the_streams_of_the_array_api():
    import cupy

    x = cvcli.as_tensor(IMAGE).to("cuda:0")
    ours, theirs = cvcli.Stream("cuda:0"), cupy.cuda.Stream(non_blocking=True)
    assert x.__dlpack_device__() == (2, 0)
    cvcli.flip(x, 0, stream=ours).buffer.synchronize()
    streams = {None: cupy.cuda.Stream.null, 1: cupy.cuda.Stream.null, 2: cupy.cuda.Stream.ptds}
    for stream, waiting in ({**streams, theirs.ptr: theirs}).items():
        with held(ours):
            out = cvcli.flip(x, 0, stream=ours)
            capsule = out.__dlpack__(stream=stream)
            mark = waiting.record()
            time.sleep(0.01)
            assert not mark.done
        mark.synchronize()
        del capsule
    with held(ours):
        out = cvcli.flip(x, 0, stream=ours)
        out.__dlpack__(stream=-1)
        theirs.record().synchronize()
    for stream in (0, -2, "1"):
        with pytest.raises(ParameterError, match="stream must be"):
            x.__dlpack__(stream=stream)


def test_a_consumer_waits_for_our_readers_too():
    import cupy

    x = cvcli.posterize(cvcli.as_tensor(IMAGE).to("cuda:0"), 8)
    reader, theirs = cvcli.Stream("cuda:0"), cupy.cuda.Stream(non_blocking=True)
    cvcli.flip(x, -1, stream=reader).buffer.synchronize()
    cupy.empty(IMAGE.shape, cupy.uint8).fill(0)
    with held(reader):
        turned = cvcli.flip(x, -1, stream=reader)
        with theirs:
            array = cupy.from_dlpack(x)
            array.fill(0)
        assert not theirs.done
    assert_same(turned.numpy(), FLIPPED)
    assert not cupy.asnumpy(array).any()


def test_cupy_takes_dlpack_and_numpy_says_why_not():
    import cupy

    x = cvcli.flip(cvcli.as_tensor(IMAGE).to("cuda:0"), -1)
    array = cupy.from_dlpack(x)
    assert array.data.ptr == x.pointer
    assert_same(cupy.asnumpy(array), FLIPPED)
    with pytest.raises(TensorError, match="must be on the CPU") as caught:
        np.asarray(x)
    assert caught.value.tip == "use .numpy()"
    # Its own error, whatever it is: the capsule that it drops on its way must not replace it.
    with pytest.raises((BufferError, RuntimeError, ValueError)):
        np.from_dlpack(x)
    assert_same(np.from_dlpack(x, device="cpu").copy(), FLIPPED)


def test_lent_memory_is_not_reused_while_its_consumer_may_use_it():
    import cupy

    shape = (512, 512, 3)
    x = cvcli.as_tensor(np.full(shape, 7, np.uint8)).to("cuda:0")
    theirs = cupy.cuda.Stream(non_blocking=True)
    # So that none has to be allocated later, which might wait for the device.
    [Tensor.empty(shape, "uint8", "HWC", "cuda:0") for _ in range(9)].clear()
    out = cvcli.posterize(x, 8)
    out.buffer.synchronize()
    pointer = out.pointer
    with theirs:
        kernel = cupy.RawKernel(SPIN, "spin")
        kernel((1,), (1,), (np.int64(1),))
        (cupy.zeros(shape, cupy.uint8) + 1).sum()
        theirs.synchronize()
        array = cupy.asarray(out.cuda())
        # Long enough for a collection of all that a whole run of tests has left.
        kernel((1,), (1,), (np.int64(2_000_000_000),))
        copied = array + 1
    del array, out
    gc.collect()
    fresh = [Tensor.empty(shape, "uint8", "HWC", "cuda:0") for _ in range(8)]
    assert pointer not in [tensor.pointer for tensor in fresh] and not theirs.done
    for tensor in fresh:
        cvcli.invert(x, out=tensor)
    theirs.synchronize()
    assert (cupy.asnumpy(copied) == 8).all()
    cvcli.free_memory("cuda:0")


SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {}
}
"""


def test_pinned_memory_is_the_hosts():
    torch = pytest.importorskip("torch")
    pinned = torch.zeros((9, 11, 3), dtype=torch.uint8).pin_memory()
    device = torch.full((9, 11, 3), 7, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    spinning(torch)
    pinned.copy_(device, non_blocking=True)
    tensor = cvcli.as_tensor(pinned)
    assert (tensor.device, tensor.pointer) == ("cpu", pinned.data_ptr())
    assert (cvcli.flip(tensor, 0).numpy() == 7).all()
