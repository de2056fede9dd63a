"""Runs the kernels' CUDA source on the host, with memory, barriers and races checked.

`install` puts an emulated GPU in the place of a device name; from then on tensors go there and
operators run there as on any GPU. `EmulationError` says which thread did what, and where.
"""

from __future__ import annotations

from emulator.compile import compile_all
from emulator.device import NAME, EmulatedDevice, EmulationError, install
from emulator.run import compare, emulate, emulate_ragged, kernels_of

__all__ = [
    "NAME",
    "EmulatedDevice",
    "EmulationError",
    "compare",
    "compile_all",
    "emulate",
    "emulate_ragged",
    "install",
    "kernels_of",
]
