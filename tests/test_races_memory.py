"""Memory that is dropped in use: handed out again, freed and refilled only after that use."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import assert_same
from races.pictures import OTHER, PICTURE, SHAPE, half_turn, on
from races.simulated import POISON, gated, opened_late, stays_busy

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device

pytest_plugins = ["races.fixtures"]


def again(place, pointer):
    """A new tensor in a block that was dropped."""
    fresh = [Tensor.empty(SHAPE, "uint8", "HWC", place) for _ in range(12)]
    (reused,) = (tensor for tensor in fresh if tensor.pointer == pointer)
    return reused


def dropped_in_use(place, use, stream):
    """Use a tensor on a held stream and drop it; return where it was, and the result."""
    engine_of(place).memory.release()
    x = on(place, PICTURE)
    pointer, result = x.pointer, use(x, stream)
    del x
    gc.collect()
    return pointer, result


def read(x, stream):
    return cvcli.flip(x, -1, stream=stream)


def overwrite(x, stream):
    cvcli.flip(on(x.device, np.full(SHAPE, POISON, np.uint8)), -1, stream=stream, out=x)


def test_a_block_that_is_still_read_is_not_overwritten(place):
    a, b, y, device = *(cvcli.Stream(place) for _ in "ab"), on(place, OTHER), open_device(place)
    with gated(device, a):
        pointer, turned = dropped_in_use(place, read, a)
        reused = again(place, pointer)
        cvcli.flip(y, -1, stream=b, out=reused)
        assert stays_busy(device, b)
    assert_same(turned.numpy(), half_turn(PICTURE))
    assert_same(reused.numpy(), half_turn(OTHER))


def test_a_block_that_is_still_written_is_not_written_before(place):
    a, b, y, device = *(cvcli.Stream(place) for _ in "ab"), on(place, OTHER), open_device(place)
    with gated(device, a):
        pointer, _ = dropped_in_use(place, overwrite, a)
        reused = again(place, pointer)
        cvcli.flip(y, -1, stream=b, out=reused)
        assert stays_busy(device, b)
    a.sync()
    assert_same(reused.numpy(), half_turn(OTHER))


def test_a_block_handed_on_unused_keeps_its_readers(place):
    a, b, y, device = *(cvcli.Stream(place) for _ in "ab"), on(place, OTHER), open_device(place)
    with gated(device, a):
        pointer, turned = dropped_in_use(place, read, a)
        reused = again(place, pointer)
        del reused
        reused = again(place, pointer)
        cvcli.flip(y, -1, stream=b, out=reused)
        assert stays_busy(device, b)
    assert_same(turned.numpy(), half_turn(PICTURE))
    assert_same(reused.numpy(), half_turn(OTHER))


def test_the_reader_of_a_block_is_outwaited_whoever_else_wrote_it(place):
    """Its last writer, on another stream than its reader, is not all there is to wait for."""
    a, b, c = (cvcli.Stream(place) for _ in range(3))
    y, device = on(place, OTHER), open_device(place)
    engine_of(place).memory.release()
    x = on(place, np.full(SHAPE, POISON, np.uint8))
    cvcli.flip(on(place, PICTURE), -1, stream=c, out=x)
    c.sync()
    with gated(device, a):
        back, pointer = cvcli.flip(x, -1, stream=a), x.pointer
        del x
        gc.collect()
        reused = again(place, pointer)
        cvcli.flip(y, -1, stream=b, out=reused)
        assert stays_busy(device, b)
    assert_same(back.numpy(), PICTURE)
    assert_same(reused.numpy(), half_turn(OTHER))


def test_host_memory_on_its_way_to_the_device_is_not_refilled(gpu):
    a, b = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    cvcli.as_tensor(PICTURE).to("cuda:0", stream=a)
    a.sync()
    with gated(gpu, a):
        late = cvcli.as_tensor(PICTURE).to("cuda:0", stream=a)
        gc.collect()
        soon = cvcli.as_tensor(OTHER).to("cuda:0", stream=b)
        b.sync()
    assert_same(late.numpy(), PICTURE)
    assert_same(soon.numpy(), OTHER)


def test_memory_given_back_to_the_system_is_outwaited(gpu):
    a = cvcli.Stream("cuda:0")
    with gated(gpu, a) as gate:
        _, turned = dropped_in_use("cuda:0", read, a)
        with opened_late(gate):
            engine_of("cuda:0").memory.release()
    assert_same(turned.numpy(), half_turn(PICTURE))


def test_a_pool_over_its_limit_keeps_what_is_in_use(gpu):
    a, pool = cvcli.Stream("cuda:0"), engine_of("cuda:0").memory
    with gated(gpu, a):
        pool.limit = 0
        _, turned = dropped_in_use("cuda:0", read, a)
        on("cuda:0", OTHER[:9])
    assert_same(turned.numpy(), half_turn(PICTURE))
    a.sync()
    on("cuda:0", OTHER[:9])
    gc.collect()
    assert pool.held == 0


def test_results_read_while_blocks_are_reused(place):
    """Four streams share few blocks, each dropped as soon as its use is queued."""
    streams = [cvcli.Stream(place) for _ in range(4)]
    pictures = [on(place, np.full((200, 300, 3), value, np.uint8)) for value in range(8)]
    for turn in range(150):
        picture = pictures[turn % 8]
        once = cvcli.flip(picture, -1, stream=streams[turn % 4])
        twice = cvcli.invert(once, stream=streams[turn % 3])
        del once
        cvcli.flip(pictures[(turn + 3) % 8], 0, stream=streams[(turn + 1) % 4])
        assert (twice.numpy(streams[turn % 2]) == 255 - turn % 8).all()


@pytest.mark.parametrize("held", (False, True), ids=("idle", "held"))
def test_free_host_memory_is_taken_again_unless_it_is_in_use(gpu, held):
    engine, a = engine_of("cuda:0"), cvcli.Stream("cuda:0")
    staging, target = engine.allocate_staging(5000), engine.allocate(5000)
    pointer = staging.pointer
    with gated(gpu, *[a] * held):
        engine.copy(target, staging, 5000, a)
        if not held:
            a.sync()
        del staging
        assert (engine.allocate_staging(5000).pointer == pointer) is not held
