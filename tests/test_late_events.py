"""Events are recorded only when a second stream, or the host, needs one."""

from __future__ import annotations

import pytest
from conftest import assert_same
from races.counting import counted
from races.cuda import on_gpu, spin
from races.pictures import PICTURE, half_turn, on

import cvcli
from cvcli.devices import open_device

pytest_plugins = ["races.fixtures"]


def test_a_chain_on_one_stream_records_no_event(counts):
    a, x = cvcli.Stream("cuda:0"), on("cuda:0", PICTURE)
    out = cvcli.flip(x, -1, stream=a)
    counts.clear()
    for turn in range(10):
        out = cvcli.flip(out, turn % 3 - 1, stream=a)
    assert counts.of("record_event") == 0


def test_a_second_stream_makes_the_first_record_one_event(counts):
    a, b, x = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), on("cuda:0", PICTURE)
    counts.device.pace(a, eager=False)
    out = cvcli.flip(x, -1, stream=a)
    for turn in range(10):
        cvcli.flip(out, turn % 3 - 1, stream=a)
    counts.clear()
    for _ in range(3):
        again = cvcli.flip(out, -1, stream=b)
    assert sum(args[1] == a.handle for name, args in counts.calls if name == "record_event") == 1
    assert_same(again.numpy(), PICTURE)


def test_an_event_recorded_late_covers_the_work_it_stands_for(counts):
    """And what the first stream queues later is not waited for twice."""
    a, b, x = cvcli.Stream("cuda:0"), cvcli.Stream("cuda:0"), on("cuda:0", PICTURE)
    counts.device.pace(a, eager=False)
    first = cvcli.flip(x, -1, stream=a)
    second = cvcli.flip(first, -1, stream=a)
    got = [cvcli.flip(first, -1, stream=b), cvcli.flip(second, -1, stream=b)]
    third = cvcli.flip(second, -1, stream=a)
    got.append(cvcli.flip(third, -1, stream=b))
    for tensor, wanted in zip(got, (PICTURE, half_turn(PICTURE), PICTURE), strict=True):
        assert_same(tensor.numpy(), wanted)


@pytest.mark.gpu
def test_a_chain_on_a_gpu_records_no_event():
    ours, ring = cvcli.Stream("cuda:0"), [on_gpu(7), on_gpu(8)]
    for turn in range(4):
        cvcli.flip(ring[turn % 2], -1, stream=ours, out=ring[1 - turn % 2])
    with counted(open_device("cuda:0")) as counts:
        spin(5, ours)
        for turn in range(10):
            cvcli.flip(ring[turn % 2], -1, stream=ours, out=ring[1 - turn % 2])
        assert not counts.calls
