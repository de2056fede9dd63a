"""Operators, whole runs and start-up on a GPU, against CV-CUDA and a plain copy.

    python tests/benchmarks/gpu.py [--json FILE] [--only operators|types|ragged|host|files|start]

Where ``cvcuda`` can be imported it is timed too, in the same process, in turn. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from measure import CVCLI, HERE, by_round, link, make_images, run, summary, table, verdict
from measure import usable_cores as cores

BATCH, HEIGHT, WIDTH = 16, 1080, 1920
_BRIGHTER = "brightness-contrast --brightness 1.2 --contrast 0.9 --shift 3 --centre 128"
CHAIN = f"flip --axis -1 | {_BRIGHTER} | invert | solarize --threshold 128 | posterize --bits 3"
OPERATORS = {
    "flip -1": "flip --axis -1",
    "flip 0": "flip --axis 0",
    "crop 1600x800": "crop --width 1600 --height 800 --x 100 --y 100",
    "pad 16": "pad --top 16 --bottom 16 --left 16 --right 16 --border reflect101",
    "invert": "invert",
    "solarize": "solarize --threshold 128",
    "posterize": "posterize --bits 3",
    "brightness_contrast": _BRIGHTER,
    "gamma_contrast": "gamma-contrast --gamma 0.8",
    "threshold": "threshold --thresh 100",
    "rotate 90": "rotate --angle 90",
    "chain of five": CHAIN,
}
# CV-CUDA 0.19 on one H200: the same batch of uint8, medians of CUDA-event timings from an idle
# stream over rotating inputs, in microseconds.
CVCUDA_US = {
    "flip -1": 72.6,
    "flip 0": 58.6,
    "crop 1600x800": 47.5,
    "pad 16": 64.7,
    "invert": 57.0,
    "solarize": 57.0,
    "posterize": 57.0,
    "brightness_contrast": 57.3,
    "gamma_contrast": 59.3,
    "chain of five": 273.4,
}
CVCUDA_HOST_US, CVCUDA_COPY_US = "8.5-10.5", "57-62"
PEER_IMAGES_PER_S = {
    "nvImageCodec, CV-CUDA flip, nvImageCodec, batches of 32": 1301,
    "imagecodecs, NumPy flip, imagecodecs, 16 threads": 415,
}
Part = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--repeat", type=int, default=50, help="timed launches of each row")
    parser.add_argument("--count", type=int, default=600, help="files of the whole runs")
    parser.add_argument("--rounds", type=int, default=3, help="times each whole run is made")
    parser.add_argument("--only", action="append", choices=[*PARTS])
    args = parser.parse_args()
    from cvcli.cli import doctor
    from cvcli.devices import gpu_count

    if not gpu_count():
        print("no NVIDIA GPU was found")
        return 1
    result: Part = {"schema_version": 1, "machine": doctor.machine(), "cores": cores()}
    print(f"{result['machine']}, {cores()} cores\n")
    for name in args.only or PARTS:
        result[name] = PARTS[name](args)
        sys.stdout.flush()
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def _inputs(dtype: str = "uint8", channels: int = 3) -> Any:
    from cvcli.cli.bench import Inputs
    from cvcli.core.spec import ImageSpec

    return Inputs("cuda:0", ImageSpec(HEIGHT, WIDTH, channels, dtype), BATCH)


def operators(args: argparse.Namespace) -> Part:
    """Time the batch that CV-CUDA's figures are for."""
    from cvcli.cli.bench import measure
    from cvcli.ops import parse_chain

    inputs, peers = _inputs(), _cvcuda_calls()
    rows, found = [], {}
    for name, text in OPERATORS.items():
        chain = parse_chain(text)
        ours = measure(name, chain, inputs, args.repeat)
        idle = measure(name, chain, inputs, args.repeat, queued=False)
        here = _time_peer(peers[name], inputs, args.repeat) if name in peers else {}
        found[name] = {"queued": ours.as_json(), "idle": idle.as_json(), "cvcuda_here": here}
        rows.append(
            [
                name,
                f"{ours.us.median:.1f}",
                f"{ours.us.share:.0%}",
                f"{ours.gb_per_s:.0f}",
                f"{ours.ratio:.2f}",
                _over(here.get("queued"), ours.us.median),
                f"{idle.us.median:.1f}",
                _over(CVCUDA_US.get(name), idle.us.median),
                _over(here.get("idle"), idle.us.median),
                f"{ours.host_us:.1f}",
            ]
        )
    print(f"## {BATCH} x {WIDTH}x{HEIGHT}x3 uint8, us\n")
    print("CV-CUDA: its time, and in brackets over ours. Idle: the stream is idle at the start.\n")
    head = ["operator", "ours", "spread", "GB/s", "x copy", "CV-CUDA here", "ours, idle"]
    print(table([*head, "CV-CUDA recorded, idle", "CV-CUDA here, idle", "host"], rows))
    print(f"A copy of the batch took CV-CUDA's machine {CVCUDA_COPY_US} us.\n")
    return found


def _over(peer: float | None, ours: float) -> str:
    return "" if peer is None else f"{peer:.1f} ({peer / ours:.2f})"


def _cvcuda_calls() -> dict[str, Callable[[Any, Any], Any]]:
    """Return CV-CUDA's call for each operator, none where it is not installed."""
    try:
        import cvcuda as cv
    except ImportError:
        return {}
    rect = cv.RectI(100, 100, 1600, 800)
    edges = {"top": 16, "bottom": 16, "left": 16, "right": 16}

    def five(x: Any, st: Any) -> Any:
        x = cv.brightness_contrast(cv.flip(x, -1, stream=st), 1.2, 0.9, 3.0, 128.0, stream=st)
        x = cv.solarize(cv.invert(x, stream=st), 128.0, stream=st)
        return cv.posterize(x, 3, stream=st)

    return {
        "flip -1": lambda x, st: cv.flip(x, -1, stream=st),
        "flip 0": lambda x, st: cv.flip(x, 0, stream=st),
        "crop 1600x800": lambda x, st: cv.customcrop(x, rect, stream=st),
        "pad 16": lambda x, st: cv.copymakeborder(
            x, cv.Border.REFLECT101, [0, 0, 0], **edges, stream=st
        ),
        "invert": lambda x, st: cv.invert(x, stream=st),
        "solarize": lambda x, st: cv.solarize(x, 128.0, stream=st),
        "posterize": lambda x, st: cv.posterize(x, 3, stream=st),
        "brightness_contrast": lambda x, st: cv.brightness_contrast(
            x, 1.2, 0.9, 3.0, 128.0, stream=st
        ),
        "gamma_contrast": lambda x, st: cv.gamma_contrast(x, 0.8, stream=st),
        "chain of five": five,
    }


def _time_peer(call: Callable[[Any, Any], Any], inputs: Any, repeat: int) -> dict[str, float]:
    """Return CV-CUDA's microseconds as ours are taken: queued behind a copy, and from idle."""
    import cvcuda

    from cvcli.core.stream import as_stream

    inputs.stream.sync()
    theirs = cvcuda.Stream()
    sources = [cvcuda.as_tensor(batch.cuda(), "NHWC") for batch in inputs.batches]
    ours, inputs.stream = inputs.stream, as_stream(theirs.handle, "cuda:0")
    found = {}
    with theirs:
        for kind in ("queued", "idle"):
            us = []
            for turn in range(-3, repeat):
                if kind == "queued":
                    inputs.keep_busy()
                begin = inputs.stream.record(timing=True)
                call(sources[turn % len(sources)], theirs)
                end = inputs.stream.record(timing=True)
                theirs.sync()
                us.append(end.elapsed(begin) * 1e3)
            found[kind] = median(us[3:])
    inputs.stream = ours
    return found


def types(args: argparse.Namespace) -> Part:
    """Time other dtypes and channel counts."""
    from cvcli.cli.bench import measure
    from cvcli.ops import parse_chain

    names = ("flip -1", "flip 0", "pad 16", "invert", "rotate 90", "chain of five")
    found: Part = {}
    rows = []
    for dtype in ("uint8", "uint16", "float32"):
        for channels in (1, 3, 4):
            inputs, key = _inputs(dtype, channels), f"{dtype} x {channels}"
            timed = [measure(n, parse_chain(OPERATORS[n]), inputs, args.repeat) for n in names]
            found[key] = [row.as_json() for row in timed]
            rows.append([key, *(f"{row.us.median:.0f} ({row.ratio:.2f})" for row in timed)])
    print("## Dtypes and channels, the same sizes: us, and in brackets over a copy\n")
    print(table(["dtype x channels", *names], rows))
    return found


def ragged(args: argparse.Namespace) -> Part:
    """Time one launch over 64 images of different sizes."""
    from ragged import time_ragged

    found = time_ragged({n: OPERATORS[n] for n in ("flip -1", "invert", "rotate 90")}, args.repeat)
    rows = [
        [name, *(f"{row[key]:.1f}" for key in ("us", "copy_us", "host_us")),
         f"{row['us'] / row['copy_us']:.2f}"]
        for name, row in found.items()
    ]  # fmt: skip
    print("## 64 images of different sizes in one launch, us\n")
    print(table(["operator", "ours", "copy", "host", "x copy"], rows))
    return found


def host(args: argparse.Namespace) -> Part:
    """Time what one call takes on the host: 1x224x224x3, calls one after the other."""
    from cvcli.core.apply import apply
    from cvcli.core.spec import ImageSpec
    from cvcli.core.tensor import Tensor
    from cvcli.ops import parse_chain

    src = Tensor.empty((1, 224, 224, 3), "uint8", "NHWC", "cuda:0")
    out = Tensor.empty((1, 224, 224, 3), "uint8", "NHWC", "cuda:0")
    found = {}
    for name in ("flip -1", "invert", "chain of five"):
        chain = parse_chain(OPERATORS[name])
        chain.plan(ImageSpec(224, 224, 3, "uint8"))
        for kind, target in (("new output", None), ("out=", out)):
            found[f"{name}, {kind}"] = _per_call(
                lambda chain=chain, target=target: apply(chain, src, out=target), src.buffer.device
            )
    print(f"## Host, us a call on 1x224x224x3 (CV-CUDA {CVCUDA_HOST_US})\n")
    print(table(["call", "us"], [[name, f"{us:.1f}"] for name, us in found.items()]))
    return found


def _per_call(call: Callable[[], Any], device: Any, calls: int = 2000) -> float:
    for _ in range(20):
        call()
    device.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - begin
    device.synchronize()
    return seconds / calls * 1e6


def files(args: argparse.Namespace) -> Part:
    """Time whole runs over JPEGs on a memory disk, on the GPU and on the CPU in turn."""
    memory_disk = Path("/dev/shm")
    place = memory_disk if memory_disk.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="gpu-files-") as temp:
        source, outs = Path(temp) / "in", {d: Path(temp) / d for d in ("cuda", "cpu")}
        link(make_images(Path(temp) / "photos", args.count), source, args.count)
        times: dict[str, list[float]] = {device: [] for device in outs}
        for number in range(-1, args.rounds):
            for device, out in outs.items():
                shutil.rmtree(out, ignore_errors=True)
                words = ["flip", "--axis", "-1", source, out, "--quiet", "--device", device]
                times[device] += [run([*CVCLI, *words]).seconds] if number >= 0 else []
        same = sum(
            path.read_bytes() == (outs["cpu"] / path.name).read_bytes()
            for path in outs["cuda"].iterdir()
        )
        floors = run([sys.executable, HERE / "peers.py", "floor", source, str(cores())]).output
    return _report_files(args.count, times, json.loads(floors), same)


def _report_files(
    count: int, times: dict[str, list[float]], floors: dict[str, float], same: int
) -> Part:
    found: Part = {name: summary(seconds) for name, seconds in times.items()}
    rows = [
        [f"cvcli --device {name}, whole process", f"{s['median']:.2f}", f"{s['min']:.2f}-"
         f"{s['max']:.2f}", f"{count / s['median']:.0f}"]
        for name, s in found.items()
    ]  # fmt: skip
    rows.append([f"codec floor, {cores()} threads, without its start", f"{floors['both']:.2f}", "",
                 f"{count / floors['both']:.0f}"])  # fmt: skip
    rows += [[f"{name} (recorded)", "", "", str(rate)] for name, rate in PEER_IMAGES_PER_S.items()]
    print(f"## {count} JPEGs of {WIDTH}x{HEIGHT} turned by 180 degrees, memory disk\n")
    print(table(["what", "s", "min-max", "images/s"], rows))
    ratio = by_round(times["cpu"], times["cuda"])["median"]
    print(f"CPU over GPU: {ratio:.2f}. Files of the same bytes: {same} of {count} "
          f"({verdict(same == count)}).\n")  # fmt: skip
    return found | {"floor_s": floors, "same_bytes": same, "count": count, "cpu_over_cuda": ratio}


def start(args: argparse.Namespace) -> Part:
    """Break down the start with an empty kernel cache and with a full one."""
    with tempfile.TemporaryDirectory(prefix="gpu-start-") as temp:
        env = {"CVCLI_CACHE_DIR": str(Path(temp) / "cache")}
        runs = [_started(env) for _ in range(10)]
        cold, warm = runs[0], runs[1:]
        image = make_images(Path(temp) / "small", 1, "640x480")[0]
        words = [*CVCLI, "flip", "--axis", "-1", image, Path(temp) / "o.jpg", "--quiet"]
        words += ["--overwrite", "--device"]
        whole = {d: [run([*words, d], env=env).seconds for _ in range(10)][1:]
                 for d in ("cuda", "cpu")}  # fmt: skip
    steps = [name for name in cold if name.endswith("ms")]
    middle = {name: median(run[name] for run in warm) for name in steps}
    rows = [[name[:-3], f"{cold[name]:.0f}", f"{middle[name]:.0f}"] for name in steps]
    rows += [[f"one JPEG, --device {d}, whole process", "", f"{median(s) * 1e3:.0f}"]
             for d, s in whole.items()]  # fmt: skip
    loaded = any(run["nvrtc"] for run in warm)
    print("## Start-up, ms\n")
    print(table(["step", "empty cache", "full cache, median of 9"], rows))
    print(f"A start with a full cache leaves NVRTC unloaded: {verdict(not loaded)}")
    print(f"CuPy itself is not imported: {verdict(not any(run['cupy'] for run in runs))}\n")
    return {"cold": cold, "warm": middle, "warm_loads_nvrtc": loaded, "whole_s": whole}


def _started(env: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, HERE / "start.py", repr(time.time())]
    begin = time.perf_counter()
    found: dict[str, Any] = json.loads(run(command, env=env).output)
    return found | {"whole process ms": (time.perf_counter() - begin) * 1e3}


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    "operators": operators, "types": types, "ragged": ragged, "host": host, "files": files,
    "start": start,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
