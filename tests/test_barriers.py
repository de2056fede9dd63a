"""How many barriers are put in: as many as are needed, and none on the way that must be fast."""

from __future__ import annotations

import pytest
from conftest import assert_same
from races.pictures import PICTURE, SHAPE, half_turn, on
from races.simulated import LEGACY
from races.toys import ABSENT, ToyArray, ToyStream

import cvcli
from cvcli.core.engine import engine_of
from cvcli.core.tensor import Tensor

pytest_plugins = ["races.fixtures"]


def chain_of_ten(x, stream):
    for turn in range(10):
        x = cvcli.flip(x, turn % 3 - 1, stream=stream)
    return x


def ready(counts):
    """Forget what was counted, and the blocks that other streams have used."""
    engine_of("cuda:0").memory.release()
    counts.clear()


def late(counts, *streams):
    """Let work of these streams be pending: who is done needs no wait."""
    for stream in streams:
        counts.device.pace(stream, eager=False)


def toy(counts, named):
    array = ToyArray(counts.device, SHAPE, named)
    array.memory[...] = PICTURE
    return array


def test_a_chain_on_one_stream_has_no_barrier(counts):
    a, x = cvcli.Stream("cuda:0"), on("cuda:0", PICTURE)
    cvcli.flip(x, -1, stream=a)
    x = chain_of_ten(cvcli.flip(x, -1, stream=a), a)
    ready(counts)
    out = Tensor.empty(SHAPE, "uint8", "HWC", "cuda:0")
    for _ in range(3):
        cvcli.flip(chain_of_ten(x, a), 0, stream=a, out=out)
    assert counts.barriers() == 0


@pytest.mark.parametrize("named", (LEGACY, ABSENT, 0), ids=("legacy", "absent", "zero"))
def test_a_producer_that_names_no_stream_costs_one_synchronisation(counts, named):
    a, b = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0")
    tensor = cvcli.as_tensor(toy(counts, named))
    assert counts.of("synchronize") == 0
    for stream in (a, b, a, b):
        out = chain_of_ten(tensor, stream)
        cvcli.flip(out, -1, stream=stream, out=tensor)
    assert counts.of("synchronize") == 1
    again = cvcli.as_tensor(tensor, "HWC")
    cvcli.flip(again, -1, stream=b)
    assert counts.of("synchronize") == 1


def test_a_producer_that_names_its_stream_costs_one_wait_each_way(counts):
    theirs, ours = ToyStream(counts.device), cvcli.Stream("cuda:0")
    cvcli.flip(on("cuda:0", PICTURE), -1, stream=ours)
    array = toy(counts, theirs.handle)
    late(counts, theirs)
    array.write(theirs, PICTURE)
    tensor = cvcli.as_tensor(array)
    ready(counts)
    out = cvcli.flip(tensor, -1, stream=ours)
    assert (counts.waits_of(ours), counts.waits_of(theirs)) == (1, 1)
    assert counts.barriers() == 2
    chain_of_ten(out, ours)
    assert counts.barriers() == 2
    assert_same(out.numpy(ours), half_turn(PICTURE))


def test_work_on_the_producers_own_stream_makes_nobody_else_wait(counts):
    theirs = ToyStream(counts.device)
    tensor, stream = cvcli.as_tensor(toy(counts, theirs.handle)), cvcli.as_stream(theirs, "cuda:0")
    x = on("cuda:0", PICTURE)
    cvcli.flip(x, -1, stream=stream)
    ready(counts)
    cvcli.flip(cvcli.flip(tensor, -1, stream=stream), -1, stream=stream, out=tensor)
    assert counts.barriers() == counts.waits_of(theirs)


@pytest.mark.parametrize("named", (None, -1))
def test_a_producer_that_opts_out_costs_nothing(counts, named):
    ours = cvcli.Stream("cuda:0")
    cvcli.flip(on("cuda:0", PICTURE), -1, stream=ours)
    tensor = cvcli.as_tensor(toy(counts, named))
    ready(counts)
    cvcli.flip(tensor, -1, stream=ours)
    assert counts.barriers() == 0


def test_an_operand_of_another_stream_costs_one_wait(counts):
    a, b, x = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), on("cuda:0", PICTURE)
    for stream in (a, b):
        cvcli.flip(x, -1, stream=stream)
    ready(counts)
    late(counts, a)
    out = cvcli.flip(x, -1, stream=a)
    counts.clear()
    turned = cvcli.flip(out, -1, stream=b)
    assert (counts.waits_of(b), counts.barriers()) == (1, 1)
    ready(counts)
    chain_of_ten(turned, b)
    assert counts.barriers() == 0


def test_writing_over_what_two_streams_read_costs_two_waits(counts):
    a, b, c = (cvcli.Stream("cuda:0") for _ in range(3))
    x = on("cuda:0", PICTURE)
    for stream in (a, b, c):
        y = cvcli.flip(x, -1, stream=stream)
    target = cvcli.flip(y, -1, stream=c)
    ready(counts)
    late(counts, a, b)
    cvcli.flip(target, 0, stream=a)
    cvcli.flip(target, 0, stream=b)
    counts.clear()
    cvcli.flip(y, -1, stream=c, out=target)
    assert (counts.waits_of(c), counts.barriers()) == (2, 2)


def test_wrapping_and_exporting_have_no_barrier(counts):
    a = cvcli.Stream("cuda:0")
    out = cvcli.flip(on("cuda:0", PICTURE), -1, stream=a)
    ready(counts)
    assert out.cuda().__cuda_array_interface__["stream"] == a.handle
    for named in (LEGACY, ABSENT, None, -1, ToyStream(counts.device).handle):
        cvcli.as_tensor(toy(counts, named))
    assert counts.barriers() == 0
