"""Operators on one CPU thread beside OpenCV's and Pillow's, on one image of 1920x1080x3 uint8.

usage: python tests/benchmarks/operators_cpu.py

Ours and theirs take turns; the medians of the rounds are printed in milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import cv2
import numpy as np
from PIL import Image

import cvcli
from cvcli.core.apply import apply
from cvcli.core.tensor import Tensor
from cvcli.devices import open_device
from cvcli.devices.cpu import CpuDevice
from cvcli.ops import parse_chain

_ROUNDS = 15
_ANGLE = cv2.getRotationMatrix2D((959.5, 539.5), 30, 1)
_TURNED = np.array([[0.9, -0.3, 100], [0.3, 0.9, -100], [1e-4, 5e-5, 1]])
_TWIST = np.array([[0.9, 0.1, 0.05, 0], [0.05, 0.8, 0.1, 0], [0.1, 0.05, 0.9, 0]])
_LANCZOS = Image.Resampling.LANCZOS
PEERS: tuple[tuple[str, Callable[[np.ndarray], object]], ...] = (
    ("flip --axis -1", lambda a: cv2.flip(a, -1)),
    ("invert", cv2.bitwise_not),
    ("threshold --thresh 50%", lambda a: cv2.threshold(a, 127.5, 255, cv2.THRESH_BINARY)),
    ("channelreorder --order 2,1,0", lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2BGR)),
    (
        "color-twist --matrix '0.9,0.1,0.05,0;0.05,0.8,0.1,0;0.1,0.05,0.9,0'",
        lambda a: cv2.transform(a, _TWIST),
    ),
    ("rotate --angle 30", lambda a: cv2.warpAffine(a, _ANGLE, (1920, 1080))),
    (
        "warp-perspective --matrix '0.9,-0.3,100;0.3,0.9,-100;0.0001,0.00005,1'",
        lambda a: cv2.warpPerspective(a, _TURNED, (1920, 1080)),
    ),
    (
        "resize 50% --filter nearest",
        lambda a: cv2.resize(a, (960, 540), interpolation=cv2.INTER_NEAREST),
    ),
    ("resize 50% --antialias off", lambda a: cv2.resize(a, (960, 540))),
    ("resize 224x224! --antialias off", lambda a: cv2.resize(a, (224, 224))),
    ("cvtcolor --code rgb2gray", lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2GRAY)),
    ("cvtcolor --code rgb2hsv", lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2HSV)),
    ("cvtcolor --code rgb2lab", lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2LAB)),
    ("gaussian --size 5 --sigma 1.2", lambda a: cv2.GaussianBlur(a, (5, 5), 1.2)),
    ("averageblur --size 7", lambda a: cv2.blur(a, (7, 7))),
    ("median-blur --size 5", lambda a: cv2.medianBlur(a, 5)),
    ("median-blur --size 15", lambda a: cv2.medianBlur(a, 15)),
    (
        "morphology --operation dilate --size 5",
        lambda a: cv2.dilate(a, np.ones((5, 5), np.uint8)),
    ),
    (
        "bilateral-filter --diameter 5 --sigma-color 50 --sigma-space 5",
        lambda a: cv2.bilateralFilter(a, 5, 50, 5),
    ),
    ("laplacian --ksize 3", lambda a: cv2.Laplacian(a, cv2.CV_8U, ksize=3)),
)
PILLOW: tuple[tuple[str, tuple[int, int], Image.Resampling], ...] = (
    ("resize 50%", (960, 540), Image.Resampling.BILINEAR),
    ("resize 50% --filter lanczos", (960, 540), _LANCZOS),
    ("resize 224x224!", (224, 224), Image.Resampling.BILINEAR),
)


def _ours(text: str, image: np.ndarray) -> Callable[[], object]:
    chain, src = parse_chain(text), cvcli.as_tensor(image)
    target = chain.plan(src.spec()).target
    out = Tensor.empty(target.shape, target.dtype, target.layout)
    return lambda: apply(chain, src, out=out).buffer.synchronize()


def _times(calls: tuple[Callable[[], object], ...]) -> list[float]:
    rounds = []
    for _ in range(_ROUNDS):
        row = []
        for call in calls:
            begin = time.perf_counter()
            call()
            row.append((time.perf_counter() - begin) * 1e3)
        rounds.append(row)
    return [median(column) for column in zip(*rounds[2:], strict=True)]


def main() -> None:
    cv2.setNumThreads(1)
    device = open_device("cpu")
    assert isinstance(device, CpuDevice)
    device.threads = 1
    image = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), np.uint8)
    picture = Image.fromarray(image)
    print(f"{'operator':72}  cvcli  theirs  ratio")
    for text, peer in PEERS:
        _show(text, (_ours(text, image), lambda peer=peer: peer(image)))  # type: ignore[misc]
    print("beside Pillow")
    for text, size, how in PILLOW:
        _show(text, (_ours(text, image), lambda s=size, h=how: picture.resize(s, h)))  # type: ignore[misc]


def _show(text: str, calls: tuple[Callable[[], object], ...]) -> None:
    ours, theirs = _times(calls)
    print(f"{text:72} {ours:6.2f} {theirs:7.2f} {ours / theirs:6.2f}")


if __name__ == "__main__":
    main()
