"""The start of one process, step by step: ``start.py TIME [DEVICE]``, with the time of its birth.

Prints JSON: milliseconds a step, and whether NVRTC and CuPy were loaded.
"""

import json
import sys
import time
from pathlib import Path

born = float(sys.argv[1])
device = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
steps: dict[str, object] = {"interpreter ms": (time.time() - born) * 1e3}
last = time.perf_counter()


def step(name: str) -> None:
    global last
    now = time.perf_counter()
    steps[f"{name} ms"], last = (now - last) * 1e3, now


import numpy as np  # noqa: E402

step("import NumPy")
from cvcli.core.apply import apply  # noqa: E402
from cvcli.core.engine import engine_of  # noqa: E402
from cvcli.core.interop import as_tensor  # noqa: E402
from cvcli.core.stream import Stream  # noqa: E402
from cvcli.ops import parse_chain  # noqa: E402

step("import cvcli")
engine = engine_of(device)
stream = Stream(device)
step("open the device")
tensor = as_tensor(np.zeros((480, 640, 3), np.uint8), "HWC").to(device, stream)
stream.sync()
step("first upload")
for number in ("first", "second"):
    apply(parse_chain("flip --axis -1"), tensor, stream=stream)
    stream.sync()
    step(f"{number} launch")
maps = Path("/proc/self/maps")
steps["nvrtc"] = maps.is_file() and "libnvrtc" in maps.read_text()
steps["cupy"] = "cupy" in sys.modules
print(json.dumps(steps))
