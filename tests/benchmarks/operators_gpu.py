"""Every operator on one GPU beside a plain copy of as many bytes and CV-CUDA's recorded times.

usage: python tests/benchmarks/operators_gpu.py [--kinds uint8x3,uint16x3,...,ragged]
           [--only NAME ...] [--json FILE]

A kind is 16 images of 1920x1080 of a dtype and so many channels, of noise; ``ragged`` is a batch
of 64 sizes. Calls are queued back to back, so that what is timed, by CUDA events, is the GPU's
work alone. What is not a name of the table is timed as a chain.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
from ragged import time_ragged

import cvcli
from cvcli.cli.bench import must_move
from cvcli.core.apply import apply
from cvcli.core.engine import engine_of
from cvcli.core.stream import Stream
from cvcli.core.tensor import Tensor
from cvcli.errors import CvcliError
from cvcli.ops import parse_chain

BATCH, HEIGHT, WIDTH = 16, 1080, 1920
_ROUNDS, _TURNS = 7, 3
_LONG_US = 30_000
_NETWORK = (
    "convertto --dtype float32 --scale 0.00392 | "
    "normalize --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 | reformat --layout planar"
)
# CV-CUDA 0.19 on an H200, where it has the operator: microseconds for the same batch of uint8x3.
CHAINS: dict[str, tuple[str, float | None]] = {
    "flip both axes": ("flip --axis -1", 72.6),
    "flip rows": ("flip --axis 0", 58.6),
    "quarter turn": ("rotate --angle 90", None),
    "crop": ("crop --width 1600 --height 800", 47.5),
    "pad 16": ("pad --top 16 --bottom 16 --left 16 --right 16 --border reflect101", 64.7),
    "rotate 30": ("rotate --angle 30", 135.1),
    "warp-affine": ("warp-affine --matrix 0.9,-0.3,100;0.3,0.9,-100", 219.8),
    "warp-perspective": (
        "warp-perspective --matrix 1,0.02,3;0.01,1,2;0.00001,0.00001,1",
        282.0,
    ),
    "resize 1/2": ("resize 50% --antialias off", 47.6),
    "resize 1/2 box": ("resize 50% --filter box", 41.2),
    "resize 1/2 lanczos": ("resize 50% --filter lanczos", 259.1),
    "resize x2 bicubic": ("resize 3840x2160! --filter bicubic --antialias off", 437.9),
    "resize 224": ("resize 224x224! --antialias off", 29.6),
    "resize 224 antialiased": ("resize 224x224!", 211.6),
    "gray": ("cvtcolor --code rgb2gray", 57.5),
    "HSV": ("cvtcolor --code rgb2hsv", 111.3),
    "Lab": ("cvtcolor --code rgb2lab", 442.5),
    "channelreorder": ("channelreorder --order 2,1,0", 213.6),
    "color-twist": ("color-twist --matrix 1.1,0,0.1,3;0,0.9,0,1;0.2,0,1,-2", 167.0),
    "adjust-hue": ("adjust-hue --factor 0.2", 144.7),
    "adjust-saturation": ("adjust-saturation --factor 1.4", 61.9),
    "adjust-sharpness": ("adjust-sharpness --factor 1.7", 173.2),
    "adjust-contrast": ("adjust-contrast --factor 1.3", None),
    "invert": ("invert", 57.0),
    "brightness-contrast": ("brightness-contrast --brightness 1.2 --contrast 0.8", 57.3),
    "gamma-contrast": ("gamma-contrast --gamma 2.2", 59.3),
    "autocontrast": ("autocontrast", 119.4),
    "histogrameq": ("histogrameq", 141.7),
    "clahe": ("clahe", None),
    "gaussian 5": ("gaussian --size 5 --sigma 1.2", 501.8),
    "gaussian 15": ("gaussian --size 15 --sigma 3", 2831.9),
    "averageblur 7": ("averageblur --size 7", 1083.3),
    "laplacian 3": ("laplacian --ksize 3", 246.4),
    "dilate 5": ("morphology --operation dilate --size 5", 735.0),
    "median 3": ("median-blur --size 3", 619.1),
    "median 5": ("median-blur --size 5", 3723.2),
    "median 15": ("median-blur --size 15", 891_133.0),
    "median 31": ("median-blur --size 31", None),
    "bilateral 5": ("bilateral-filter --diameter 5 --sigma-color 50 --sigma-space 5", 782.7),
    "convertto float32": ("convertto --dtype float32 --scale 0.00392", 153.1),
    "reformat": ("reformat --layout planar", 96.3),
    "chain to a network": (f"flip --axis -1 | resize 224x224! --antialias off | {_NETWORK}", 113.9),
    "the same, antialiased": (f"flip --axis -1 | resize 224x224! | {_NETWORK}", None),
    "chain of five": (
        "flip --axis -1 | brightness-contrast --brightness 1.2 | invert | solarize | "
        "posterize --bits 4",
        273.4,
    ),
    "chain to HSV": (
        "resize 50% --antialias off | cvtcolor --code rgb2hsv | gaussian --size 5 --sigma 1.2 | "
        "crop --width 800 --height 400",
        217.9,
    ),
}
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--kinds", default="uint8x3")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    chains = {name: CHAINS.get(name, (name, None)) for name in args.only or CHAINS}
    found: dict[str, list[Row]] = {}
    for kind in args.kinds.split(","):
        peers = kind == "uint8x3"
        times = _ragged(chains) if kind == "ragged" else _batch(kind, chains)
        found[kind] = []
        for row in times:
            row["cvcuda_us"] = chains[row["name"]][1] if peers else None
            found[kind].append(row)
            print(_line(kind, row, _first(found, row["name"])), flush=True)
        ratios = [row["cvcuda_us"] / row["us"] for row in found[kind] if row["cvcuda_us"]]
        if ratios:
            print(f"CV-CUDA's time over ours, geometric mean: {geometric_mean(ratios):.2f}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0


def _first(found: dict[str, list[Row]], name: str) -> Row | None:
    rows = next(iter(found.values()))
    return next((row for row in rows if row["name"] == name), None)


def _line(kind: str, row: Row, base: Row | None) -> str:
    share = row["copy_us"] / row["us"]
    words = [f"{kind:10s} {row['name']:24s} {row['us']:9.1f} us  {1 / share:6.2f} x its copy"]
    if row["cvcuda_us"]:
        words.append(f"CV-CUDA {row['cvcuda_us']:9.1f} {row['cvcuda_us'] / row['us']:6.2f} x")
    if base is not None and base is not row:
        words.append(f"{base['copy_us'] / base['us'] / share:5.2f} x the first kind's")
    return "  ".join(words)


def _batch(kind: str, chains: dict[str, tuple[str, float | None]]) -> list[Row]:
    """Time each chain on a batch, and say what a copy of the bytes it must move would take."""
    stream = Stream("cuda:0")
    dtype, _, channels = kind.partition("x")
    sources = [_noise(dtype, int(channels), seed) for seed in range(_TURNS)]
    nbytes = sources[0].nbytes
    engine = engine_of("cuda:0")
    rooms = [engine.allocate(nbytes) for _ in range(2)]

    def copy(turn: int) -> None:
        engine.copy(rooms[turn % 2], sources[turn % _TURNS].buffer, nbytes, stream)

    rows: list[Row] = []
    with stream:
        copy_us = _timed(copy, stream)
        for name, (text, _) in chains.items():
            try:
                chain = parse_chain(text)
                moved = BATCH * must_move(chain.plan(sources[0].spec()))
                us = _timed(lambda turn, c=chain: apply(c, sources[turn % _TURNS]), stream)
            except CvcliError as error:
                print(f"{kind:10s} {name:24s} {error}")
                continue
            rows.append({"name": name, "us": us, "copy_us": copy_us * moved / (2 * nbytes)})
    return rows


def _noise(dtype: str, channels: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    shape = (BATCH, HEIGHT, WIDTH, channels)
    if dtype == "float32":
        return cvcli.as_tensor(rng.random(shape, np.float32)).to("cuda:0")
    top = np.iinfo(dtype).max
    return cvcli.as_tensor(rng.integers(0, top, shape, dtype, endpoint=True)).to("cuda:0")


def _timed(call: Callable[[int], object], stream: Stream) -> float:
    """Return microseconds of a call, the median of rounds of calls queued back to back."""

    def round_of(calls: int) -> float:
        begin = stream.record(timing=True)
        for turn in range(calls):
            call(turn)
        end = stream.record(timing=True)
        end.sync()
        return end.elapsed(begin) * 1e3 / calls

    round_of(1)
    once = round_of(2)
    calls = max(1, min(20, int(_LONG_US / max(once, 1))))
    return median(round_of(calls) for _ in range(_ROUNDS if calls > 1 else 2))


def _ragged(chains: dict[str, tuple[str, float | None]]) -> list[Row]:
    rows: list[Row] = []
    for name, (text, _) in chains.items():
        try:
            rows.append({"name": name, **time_ragged({name: text}, 5)[name]})
        except CvcliError as error:
            print(f"ragged     {name:24s} {error}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
