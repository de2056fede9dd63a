"""The peers of the main job, each a program: ``peers.py pillow|floor|operators ARGUMENTS``.

Each imports only what it needs, so that its whole process is what a user's script would be.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

QUALITY = 90


def pillow(source: str, target: str, threads: str) -> None:
    """Turn every JPEG of a folder by 180 degrees, as a user's script would."""
    from PIL import Image

    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)

    def turn(path: Path) -> None:
        with Image.open(path) as image:
            turned = image.transpose(Image.Transpose.ROTATE_180)
        turned.save(out / path.name, quality=QUALITY)

    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(turn, sorted(Path(source).iterdir())))


def floor(source: str, threads: str) -> None:
    """Decode and encode every JPEG of a folder and do nothing else; print the seconds.

    Files are read before, and nothing is written: no program on this codec can be faster.
    """
    import imagecodecs
    import numpy as np

    files = [path.read_bytes() for path in sorted(Path(source).iterdir())]
    shape = imagecodecs.jpeg8_decode(files[0]).shape
    rooms = [np.empty(shape, np.uint8) for _ in range(int(threads))]

    def both(share: int) -> None:
        for data in files[share :: len(rooms)]:
            imagecodecs.jpeg8_decode(data, out=rooms[share])
            imagecodecs.jpeg8_encode(rooms[share], level=QUALITY)

    with ThreadPoolExecutor(len(rooms)) as pool:
        begin = time.perf_counter()
        list(pool.map(both, range(len(rooms))))
        seconds = time.perf_counter() - begin
    print(json.dumps({"both": seconds}))


def operators(repeat: str) -> None:
    """Print milliseconds of operators here and in OpenCV: one thread, in turn, 1080p uint8.

    ``cvcli`` is from the call to the result, ``device`` without the way to the stream's thread.
    """
    import cv2
    import numpy as np

    from cvcli.core.stream import Stream
    from cvcli.core.tensor import Tensor
    from cvcli.devices import open_device

    device: Any = open_device("cpu")
    device.threads = 1
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (1080, 1920, 3), np.uint8) for _ in range(16)]
    ours, theirs = Tensor.empty((1080, 1920, 3), "uint8", "HWC"), np.empty_like(images[0])
    stream, rows = Stream("cpu"), {}
    for name, (call, peer) in _pairs(theirs).items():

        def here(turn: int, call: Callable[..., Any] = call) -> None:
            call(turn, images, ours, stream)
            stream.sync()

        def there(turn: int, peer: Callable[[Any], Any] = peer) -> None:
            peer(images[turn % len(images)])

        rows[name] = _in_turn(here, there, int(repeat))
        here(0), there(0)
        if not np.array_equal(ours.numpy(), theirs):
            raise SystemExit(f"{name}: OpenCV gives other pixels")
    for name, ms in _on_device(list(rows), int(repeat)).items():
        rows[name]["device"] = ms
    print(json.dumps(rows))


def _on_device(names: list[str], repeat: int) -> dict[str, float]:
    from cvcli.cli.bench import Inputs, measure
    from cvcli.core.spec import ImageSpec
    from cvcli.ops import parse_chain

    inputs = Inputs("cpu", ImageSpec(1080, 1920, 3, "uint8"), 1)
    words = {"flip": "--axis", "posterize": "--bits"}
    chains = {name: name.replace(" ", f" {words[name.split()[0]]} ") for name in names}
    return {
        name: measure(name, parse_chain(chain), inputs, repeat).us.median / 1e3
        for name, chain in chains.items()
    }


def _pairs(out: Any) -> dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]]:
    """Return each operator here and its like in OpenCV, which writes to ``out``."""
    import cv2
    import numpy as np

    import cvcli
    from cvcli import as_tensor

    table = np.arange(256, dtype=np.uint8) & 0b1110_0000

    def operator(name: str, *params: float) -> Callable[..., Any]:
        function = getattr(cvcli, name)

        def call(turn: int, images: list[Any], target: Any, stream: Any) -> None:
            source = as_tensor(images[turn % len(images)], "HWC")
            function(source, *params, stream=stream, out=target)

        return call

    def flip(axis: int) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
        return operator("flip", axis), lambda image: cv2.flip(image, axis, out)

    pairs = {f"flip {axis}": flip(axis) for axis in (-1, 0, 1)}
    return pairs | {"posterize 3": (operator("posterize", 3), lambda i: cv2.LUT(i, table, out))}


def _in_turn(
    here: Callable[[int], None], there: Callable[[int], None], repeat: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {"cvcli": [], "opencv": []}
    for turn in range(-3, repeat):
        for name, call, at in (("cvcli", here, turn), ("opencv", there, turn + 8)):
            begin = time.perf_counter()
            call(at)
            times[name].append((time.perf_counter() - begin) * 1e3)
    return {name: median(ms[3:]) for name, ms in times.items()}


if __name__ == "__main__":
    {"pillow": pillow, "floor": floor, "operators": operators}[sys.argv[1]](*sys.argv[2:])
