"""Fixtures of the tests of order; a plugin, which test modules name."""

from __future__ import annotations

import pytest

from races.counting import counted
from races.simulated import Adversary, SimulatedGpu, installed


@pytest.fixture
def gpu():
    """A simulated GPU in the place of the first."""
    device = SimulatedGpu()
    with installed(device):
        yield device
    device.close()


@pytest.fixture(params=("cpu", "cuda:0"))
def place(request, gpu):
    """A real CPU device, and the simulated GPU."""
    return request.param


@pytest.fixture
def counts():
    """The barriers of a simulated GPU, which runs everything at once; its device is in it."""
    device = Adversary()
    with counted(device) as counts, installed(device):
        counts.device = device
        yield counts
        device.close()
