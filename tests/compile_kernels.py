"""Fill the cache with the kernels that the operators' cases need, on all processors at once.

usage: python compile_kernels.py [PROCESSES]

NVRTC compiles one kernel at a time in a process; the tests on a GPU would wait for each in turn.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from test_kernels import every_pass

from cvcli.core.kernels import kernel_of
from cvcli.devices import nvrtc
from cvcli.devices.base import Kernel
from cvcli.devices.find import describe_gpu


def fill(kernels: list[Kernel]) -> int:
    compute = describe_gpu(0).compute
    for kernel in kernels:
        nvrtc.cubin(kernel, compute)
    return len(kernels)


def main() -> None:
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1
    kernels = {
        kernel_of(item, uniform=uniform) for item in every_pass() for uniform in (True, False)
    }
    ordered = sorted(kernels, key=repr)
    parts = [ordered[i :: 4 * processes] for i in range(4 * processes)]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        print(f"compiled {sum(pool.map(fill, parts))} kernels in {processes} processes")


if __name__ == "__main__":
    main()
