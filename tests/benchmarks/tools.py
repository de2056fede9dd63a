"""The tools beside cvcli: how each is found, and how it does a job, with one worker a core."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from jobs import CROP, HALF, Job
from measure import CVCLI, HERE, Command, Cost, run

QUALITY = "90"
_TURNS, _SIZES = ("flip", "png", "tiny"), ("resize", "mixed")
_HALF = f"{HALF[0]}x{HALF[1]}"
_GPU_JOBS = ("flip", "tiny", "resize", "large")


@dataclass(frozen=True, slots=True)
class Tool:
    """``start`` runs a job over a folder into another, or is None where the tool can't do it."""

    name: str
    how: str
    start: Callable[[Job, Path, Path, int], Cost | None]
    reference: bool = False
    """Whether it is a floor, not something to use instead."""


def found(gpu: bool) -> Iterator[Tool]:
    """Give cvcli and each peer that is installed; those on a GPU only if there is one."""
    yield Tool("cvcli", "one process, a thread a core", partial(_cvcli, "cpu", "cpu"))
    if gpu:
        yield Tool("cvcli, GPU", "one process, --device cuda", partial(_cvcli, "cuda", "cpu"))
    if gpu and _has("nvidia.nvimgcodec"):
        how = "one process, --device cuda --codec gpu"
        yield Tool("cvcli, GPU codecs", how, partial(_cvcli, "cuda", "gpu"))
    yield Tool("codec floor", "decode and encode alone, a thread a core", _floor, reference=True)
    if shutil.which("gm"):
        yield Tool("GraphicsMagick", "`gm mogrify`, a process a core", partial(_magick, ["gm"]))
    for name, program in (("ImageMagick 7", ["magick"]), ("ImageMagick 6", [])):
        if _is_magick(program):
            yield Tool(name, "`mogrify`, a process a core", partial(_magick, program))
    if shutil.which("vips"):
        yield Tool("vips", "`vips rot`, a process an image, one a core", _vips)
    if shutil.which("vipsthumbnail"):
        yield Tool("vipsthumbnail", "a process a core", _vipsthumbnail)
    if shutil.which("ffmpeg"):
        yield Tool("ffmpeg", "a process a core, one thread each", _ffmpeg)
    for name, module in (("Pillow", "PIL"), ("OpenCV", "cv2"), ("pyvips", "pyvips")):
        if importlib.util.find_spec(module):
            how = "a Python script, a thread a core"
            yield Tool(name, how, partial(_script, name.lower()))
    if gpu and importlib.util.find_spec("torchvision"):
        yield Tool("torchvision", "on the GPU, batches of 32", partial(_gpu, "torchvision"))
    if gpu and _has("nvidia.nvimgcodec") and _has("cvcuda"):
        how = "on the GPU, batches of 32"
        yield Tool("nvImageCodec, CV-CUDA", how, partial(_gpu, "nvimagecodec"))


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _is_magick(program: Sequence[str]) -> bool:
    name = [*program, "mogrify"][0]
    if not shutil.which(name):
        return False
    told = subprocess.run([name, "-version"], capture_output=True, text=True, check=False)
    return f"ImageMagick {'7' if program else '6'}" in told.stdout


def _shares(source: Path, workers: int) -> list[list[Path]]:
    files = sorted(source.iterdir())
    return [files[i::workers] for i in range(min(workers, len(files)))]


def _cvcli(device: str, codec: str, job: Job, source: Path, out: Path, workers: int) -> Cost:
    words = ["--quiet", "--device", device, "--codec", codec]
    words += ["--threads", str(workers), "--quality", QUALITY]
    return run([*CVCLI, "run", job.chain, source, out, *words])


def _floor(job: Job, source: Path, out: Path, workers: int) -> Cost | None:
    if job.name not in _TURNS:
        return None
    return run([sys.executable, HERE / "peers.py", "floor", source, str(workers)])


def _script(library: str, job: Job, source: Path, out: Path, workers: int) -> Cost:
    words = [library, job.name, str(source), str(out), str(workers)]
    return run([sys.executable, HERE / "peers.py", *words])


def _gpu(library: str, job: Job, source: Path, out: Path, workers: int) -> Cost | None:
    return _script(library, job, source, out, workers) if job.name in _GPU_JOBS else None


def _magick(program: list[str], job: Job, source: Path, out: Path, workers: int) -> Cost:
    """A process a core is its best: its own threads only get in each other's way then."""
    out.mkdir()
    graphics = program == ["gm"]
    place = ["-output-directory", out] if graphics else ["-path", out]
    words = _magick_words(job)
    if job.kind not in ("icons", "mixed"):
        words += ["-quality", QUALITY, "-sampling-factor", "2x2" if graphics else "4:2:0"]
    commands: list[Command] = [
        # Names without a folder: gm would put that below the output's.
        [*program, "mogrify", *place, *words, *(path.name for path in files)]
        for files in _shares(source, workers)
    ]
    one = {"OMP_NUM_THREADS": "1", "MAGICK_THREAD_LIMIT": "1"}
    return run(*commands, env=one, cwd=source)


def _magick_words(job: Job) -> list[str]:
    if job.name in _TURNS:
        return ["-flip", "-flop"]
    smooth = ["-filter", "Triangle", "-resize"]
    if job.name in _SIZES:
        return [*smooth, "256x256^"]
    if job.name == "large":
        return [*smooth, "50%"]
    cut = ["-gravity", "center", "-crop", f"{CROP[0]}x{CROP[1]}+0+0", "+repage"]
    return [*cut, *smooth, f"{_HALF}!", "-flop", "-blur", "0x1", "-negate"]


def _vips(job: Job, source: Path, out: Path, workers: int) -> Cost | None:
    if job.name not in ("flip", "png"):
        return None
    out.mkdir()
    ending = "" if job.kind == "icons" else f"[Q={QUALITY},subsample_mode=on]"
    script = f'vips rot "$1" "{out}/$(basename "$1"){ending}" d180'
    many = ["xargs", "-0", "-n", "1", "-P", str(workers), "sh", "-c", script, "-"]
    listed = "\0".join(map(str, sorted(source.iterdir())))
    names = out.with_suffix(".names")
    names.write_text(listed)
    return run([*many[:1], "-a", names, *many[1:]], env={"VIPS_CONCURRENCY": "1"})


def _vipsthumbnail(job: Job, source: Path, out: Path, workers: int) -> Cost | None:
    """It fits into a box; one that is far too long in one direction gives the size wanted."""
    if job.name not in ("resize", "large"):
        return None
    out.mkdir()
    box = "x256" if job.name == "resize" else "1920x"
    words = ["-s", box, "-o", f"{out}/%s.jpg[Q={QUALITY},subsample_mode=on]"]
    commands: list[Command] = [
        ["vipsthumbnail", *files, *words] for files in _shares(source, workers)
    ]
    return run(*commands, env={"VIPS_CONCURRENCY": "1"})


def _ffmpeg(job: Job, source: Path, out: Path, workers: int) -> Cost | None:
    """It takes files that are numbered and all of one size; its quality 3 is about 90 here."""
    if job.name == "mixed":
        return None
    out.mkdir()
    files = sorted(source.iterdir())
    cuts = [len(files) * i // workers for i in range(workers + 1)]
    coding = [] if job.kind == "icons" else ["-q:v", "3", "-pix_fmt", "yuvj420p"]
    commands = [
        [
            *("ffmpeg", "-nostdin", "-v", "error", "-threads", "1", "-start_number", str(begin)),
            *("-i", source / f"%05d{files[0].suffix}", "-frames:v", str(end - begin)),
            *("-vf", _ffmpeg_filter(job), *coding, "-threads", "1", "-start_number", str(begin)),
            out / f"%05d{files[0].suffix}",
        ]
        for begin, end in pairwise(cuts)
        if end > begin
    ]
    return run(*commands, env={"AV_LOG_FORCE_NOCOLOR": "1"})


def _ffmpeg_filter(job: Job) -> str:
    if job.name in _TURNS:
        return "hflip,vflip"
    if job.name == "resize":
        return "scale=455:256:flags=bilinear"
    if job.name == "large":
        return "scale=1920:1080:flags=bilinear"
    size = f"crop={CROP[0]}:{CROP[1]},scale={HALF[0]}:{HALF[1]}:flags=bilinear"
    return f"{size},hflip,gblur=sigma=1,negate"


def versions() -> dict[str, str]:
    """Return what the tools say of themselves."""
    asked = {
        "GraphicsMagick": ["gm", "version"], "ImageMagick": ["mogrify", "-version"],
        "libvips": ["vips", "--version"], "ffmpeg": ["ffmpeg", "-version"],
    }  # fmt: skip
    told = {}
    for name, command in asked.items():
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            told[name] = " ".join(done.stdout.split("\n")[0].split()[:3])
    for name in ("pillow", "opencv-python-headless", "opencv-python", "pyvips", "imagecodecs"):
        try:
            told[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return told


def clean(out: Path) -> None:
    """Remove what a run left."""
    shutil.rmtree(out, ignore_errors=True)
    out.with_suffix(".names").unlink(missing_ok=True)
