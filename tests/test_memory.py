"""Memory: what is told of it, how it is bounded and given back, and that it does not grow."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import numpy as np
import pytest
from conftest import GPU, fresh_python, held, noise, view

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.memory import Pool, size_class
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.errors import DeviceError, ParameterError

MIB = 1 << 20


@pytest.fixture
def tidy(device):
    """Nothing kept at the start, and the limit put back at the end."""
    gc.collect()
    cvcli.free_memory(device)
    limit = cvcli.memory_info(device).limit
    yield device
    cvcli.set_pool_limit(limit, device)


def block(device, nbytes):
    return Tensor.empty((nbytes,), "uint8", None, device)


def test_what_is_in_use_and_what_is_kept_is_told(tidy):
    before = cvcli.memory_info(tidy)
    x = block(tidy, 3 * MIB)
    info = cvcli.memory_info(tidy)
    assert (info.device, info.in_use - before.in_use, info.held) == (tidy, 3 * MIB, 0)
    assert 0 < info.free <= info.total and info.limit > 0 and info.staging >= 0
    del x
    info = cvcli.memory_info(tidy)
    assert (info.in_use, info.held) == (before.in_use, 3 * MIB)
    assert cvcli.free_memory(tidy) == 3 * MIB
    assert cvcli.memory_info(tidy).held == 0


def test_memory_is_given_back_after_its_last_use(tidy):
    x, stream = block(tidy, 512).buffer, cvcli.Stream(tidy)
    picture = cvcli.as_tensor(noise((61, 83, 3), "uint8")).to(tidy)
    out = cvcli.flip(picture, -1, stream=stream)
    del out, x
    assert cvcli.free_memory() >= size_class(61 * 83 * 3)
    assert stream.query()


def test_the_limit_bounds_what_is_kept(tidy):
    cvcli.set_pool_limit(4 * MIB, tidy)
    assert cvcli.memory_info(tidy).limit == 4 * MIB
    for _ in range(3):
        blocks = [block(tidy, MIB) for _ in range(10)]
        assert cvcli.memory_info(tidy).in_use >= 10 * MIB
        del blocks
        assert cvcli.memory_info(tidy).held <= 4 * MIB
    cvcli.set_pool_limit(2 * MIB, tidy)
    assert cvcli.memory_info(tidy).held <= 2 * MIB
    cvcli.set_pool_limit(0, tidy)
    block(tidy, MIB)
    assert cvcli.memory_info(tidy).held == 0


@pytest.mark.parametrize("bad", (-1, 1.5, "1", None, True))
def test_a_limit_is_a_number_of_bytes(bad):
    with pytest.raises(ParameterError, match="set_pool_limit: nbytes must be an integer >= 0"):
        cvcli.set_pool_limit(bad, "cpu")


def test_the_environment_sets_the_limit():
    code = "import cvcli; print(cvcli.memory_info('cpu').limit)"
    assert fresh_python(code, CVCLI_POOL_BYTES="12345") == "12345"
    for function in (cvcli.memory_info, cvcli.free_memory):
        with pytest.raises(DeviceError, match="device must be"):
            function("gpu")


def test_by_default_all_devices_give_back(tidy):
    block("cpu", MIB), block(tidy, MIB)
    kept = {cvcli.memory_info(name).held for name in ("cpu", tidy)}
    assert min(kept) >= MIB
    cvcli.free_memory()
    assert {cvcli.memory_info(name).held for name in ("cpu", tidy)} == {0}


def test_lent_memory_waits_for_an_idle_device(device, monkeypatch):
    opened, waits = open_device(device), []
    real = opened.synchronize
    monkeypatch.setattr(opened, "synchronize", lambda: waits.append(1) or real())
    pool = Pool(opened, staging=False, limit=8 * MIB)
    pointers = set()
    for _ in range(8):
        buffer = pool.take(MIB)
        buffer.lent = True
        pointers.add(buffer.pointer)
        del buffer
    assert len(pointers) == 8 and pool.held == 8 * MIB and not waits
    buffer = pool.take(MIB)
    assert buffer.pointer not in pointers and not waits
    pointers.add(buffer.pointer)
    buffer.lent = True
    del buffer
    # The limit is reached: one wait makes all of them free again.
    buffer = pool.take(MIB)
    assert buffer.pointer in pointers and len(waits) == 1
    del buffer
    assert pool.release() == 8 * MIB == 8 * size_class(MIB)
    assert (pool.held, pool.used, len(waits)) == (0, 0, 1)


def test_a_held_stream_does_not_let_its_memory_go(device):
    cvcli.free_memory(device)
    stream, x = cvcli.Stream(device), cvcli.as_tensor(noise((61, 83, 3), "uint8")).to(device)
    cvcli.flip(x, -1).buffer.synchronize()
    # A GPU waits for all its work when memory is freed, so there must be none to free.
    cvcli.free_memory(device)
    limit = cvcli.memory_info(device).limit
    with held(stream):
        out = cvcli.flip(x, -1, stream=stream)
        kept = size_class(out.nbytes)
        del out
        cvcli.set_pool_limit(0, device)
        assert cvcli.memory_info(device).held >= kept
    stream.sync()
    cvcli.set_pool_limit(0, device)
    assert cvcli.memory_info(device).held == 0
    cvcli.set_pool_limit(limit, device)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "device, calls", (("cpu", 4_000), pytest.param("cuda:0", 100_000, marks=GPU.marks))
)
def test_many_calls_of_varying_sizes_do_not_grow(device, calls):
    rng, streams = random.Random(3), [cvcli.Stream(device) for _ in range(3)]
    whole = cvcli.as_tensor(noise((160, 160, 3), "uint8")).to(device)
    array = np.asarray(noise((40, 40, 3), "uint8"))

    def run(count):
        for turn in range(count):
            stream = streams[turn % 3]
            shape = rng.randint(1, 160), rng.randint(1, 160), 3
            out = cvcli.flip(view(whole, shape, whole.strides), turn % 3 - 1, stream=stream)
            if turn % 5 == 0:
                cvcli.flip(out, -1, stream=streams[turn % 2])
            if turn % 7 == 0:
                cvcli.as_tensor(array[: rng.randint(1, 40)])
            if turn % 50 == 0:
                stream.sync()
        for stream in streams:
            stream.sync()

    run(calls // 4)
    before, info, events = resident(), cvcli.memory_info(device), count_of_events(device)
    run(calls)
    after = cvcli.memory_info(device)
    assert after.in_use <= info.in_use + MIB and after.held <= info.held + 16 * MIB
    assert after.held <= after.limit and resident() - before < 32 * MIB
    assert count_of_events(device) <= events + 200


def count_of_events(device):
    engine = engine_of(device)
    return len(engine.device._events) if device == "cpu" else len(engine._events._free)
