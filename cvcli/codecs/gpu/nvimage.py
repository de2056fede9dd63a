"""NVIDIA's nvImageCodec: JPEGs decoded and encoded on a GPU, by pointers and streams.

What it decodes is ready in the order of the stream it was given, and only there. The hardware
engine is known to write without regard to what the stream has queued before, so whoever calls
`Coder.decode` must have waited for all that may still use memory of images decoded earlier.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cvcli.core.spec import ImageSpec
from cvcli.errors import DeviceError, OutOfMemoryError

_NAME = "nvidia.nvimgcodec"
_PACKAGES = ("nvidia-nvimgcodec-cu13", "nvidia-nvimgcodec-cu12")
# Smooth chroma upsampling, as libjpeg-turbo does; theirs is off unless asked for.
_OPTIONS = ":fancy_upsampling=1"
# The hardware engine gives libjpeg-turbo's pixels but for a level here and there; where a GPU has
# none, the other decoder is up to three levels off. Never both: which image of a batch goes to
# which of them would depend on the others.
_DECODERS, _ENCODER = ("HW_GPU_ONLY", "HYBRID_CPU_GPU"), "HYBRID_CPU_GPU"
# More threads get into each other's way, and so do more images in a call; measured on an H200.
_DECODER_THREADS, _ENCODER_THREADS = 1, 2
_ENCODED_AT_ONCE = 16
_LEAST_ROOM = 1 << 16
_START, _END = b"\xff\xd8", b"\xff\xd9"
# Coders are made and ended one at a time: whether the library allows more, nobody says.
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a JPEG is to be coded: quality 1 to 100, chroma sampling, codes made for the image."""

    quality: int
    sampling: str
    optimized: bool


@dataclass(frozen=True, slots=True)
class DeviceImage:
    """Pixels (height, width, channels) of uint8 on a GPU; rows are ``row_pitch`` bytes apart.

    The memory belongs to ``owner``.
    """

    pointer: int
    row_pitch: int
    spec: ImageSpec
    owner: object = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "version": 3,
            "shape": spec.shape,
            "typestr": "|u1",
            "data": (self.pointer, False),
            "strides": (self.row_pitch, spec.channels, 1),
            "stream": None,
        }


def installed() -> bool:
    """Return whether nvImageCodec is there to be imported, without importing it."""
    try:
        return importlib.util.find_spec(_NAME) is not None
    except ModuleNotFoundError:
        return False


def version() -> str | None:
    """Return the version of the installed package and its name; None where there is none."""
    from importlib import metadata

    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return f"{metadata.version(name)} ({name})"
    return None


@cache
def _library() -> Any:
    """Return the library, which is started by its import."""
    # Whatever it can't decode, it tells on stderr; here that becomes a note or an error.
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    with _lock, _quiet():
        return importlib.import_module(_NAME)


def preload() -> None:
    """Load the library now, if it can be: that takes as long as a GPU takes to start."""
    with contextlib.suppress(Exception):
        _library()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep stderr clean of words about codecs that it looks for in vain and we don't use."""
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    try:
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


class Coder:
    """A decoder and an encoder on the GPU of number ``index``; for one thread at a time.

    Raises `DeviceError` where the library or the GPU can't be used. To be closed, or lent by
    `borrow` to be given back.
    """

    def __init__(self, index: int) -> None:
        try:
            library = _library()
            with _lock:
                self._decoder = _decoder(library, index)
                self._encoder = library.Encoder(
                    device_id=index,
                    max_num_cpu_threads=_ENCODER_THREADS,
                    backends=[_backend(library, _ENCODER)],
                )
            self._decoding = library.DecodeParams(
                apply_exif_orientation=False,
                color_spec=library.ColorSpec.UNCHANGED,
                allow_any_depth=True,
            )
        except Exception as error:
            raise DeviceError(f"cuda:{index}: nvImageCodec can't be used ({error})") from error
        self.index, self.failed = index, False
        self._library, self._rooms = library, _Rooms(library)
        self._encoding: dict[tuple[Recipe, int], Any] = {}

    def close(self) -> None:
        """End decoder and encoder, of which nothing is pending any more."""
        with _lock:
            del self._decoder, self._encoder

    def give_back(self) -> None:
        """Let others borrow it; nothing is pending any more."""
        if self.failed:
            self.close()
            return
        self._rooms.keep(_ENCODED_AT_ONCE)
        with _lock:
            _idle.append(self)

    def decode(self, files: Sequence[bytes], stream: int) -> list[DeviceImage | None]:
        """Decode whole files, all gray or all RGB; None stands for what it can't decode.

        Raises `OutOfMemoryError`, or `DeviceError` for anything else that fails as a whole.
        """
        with _guarded(self):
            found = self._decoder.decode(list(files), params=self._decoding, cuda_stream=stream)
        return [None if image is None else _on_device(image) for image in found]

    def encode(
        self, images: Sequence[DeviceImage], recipes: Sequence[Recipe], stream: int
    ) -> list[memoryview | None]:
        """Encode pixels that the stream has written or will write; None for what fails.

        The files are in host memory when this returns, which is used again once no view of a
        file is left.
        """
        coded: list[memoryview | None] = [None] * len(images)
        kinds = [
            (recipe, image.spec.channels) for image, recipe in zip(images, recipes, strict=True)
        ]
        for kind in dict.fromkeys(kinds):
            places = [place for place, other in enumerate(kinds) if other == kind]
            for begin in range(0, len(places), _ENCODED_AT_ONCE):
                few = places[begin : begin + _ENCODED_AT_ONCE]
                found = self._encode([images[place] for place in few], *kind, stream)
                for place, code in zip(few, found, strict=True):
                    coded[place] = _whole(code)
        return coded

    def _encode(
        self, images: list[DeviceImage], recipe: Recipe, channels: int, stream: int
    ) -> list[Any]:
        params = self._params(recipe, channels)
        with _guarded(self):
            rooms = self._rooms.take([image.spec.nbytes // 4 + _LEAST_ROOM for image in images])
            found = self._encoder.encode(
                images, ".jpg", code_stream_s=rooms, params=params, cuda_stream=stream
            )
            return list(found)

    def _params(self, recipe: Recipe, channels: int) -> Any:
        known = self._encoding.get((recipe, channels))
        if known is None:
            library, name = self._library, "GRAY" if channels == 1 else recipe.sampling
            known = self._encoding[recipe, channels] = library.EncodeParams(
                quality_type=library.QualityType.QUALITY,
                quality_value=recipe.quality,
                chroma_subsampling=getattr(library.ChromaSubsampling, f"CSS_{name}"),
                jpeg_encode_params=library.JpegEncodeParams(
                    progressive=False, optimized_huffman=recipe.optimized
                ),
            )
        return known


# Ready-made ones: a decoder's first image takes most of a second.
_idle: list[Coder] = []


def borrow(index: int) -> Coder:
    """Return a coder that nobody uses, to be given back; raises as `Coder`."""
    with _lock:
        for coder in _idle:
            if coder.index == index:
                _idle.remove(coder)
                return coder
    return Coder(index)


@atexit.register
def end_idle() -> None:
    """Close what nobody uses, while the library is still there."""
    while _idle:
        _idle.pop().close()


def _references(items: Sequence[object], place: int) -> int:
    return sys.getrefcount(items[place])


_UNUSED = _references([object()], 0)


class _Rooms:
    """Memory for encoded files, used again: new memory takes twice as long to get as encoding.

    A room is taken as long as anything but this refers to it, as views of its file do.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._rooms: list[Any] = []
        self._sizes: list[int] = []

    def take(self, sizes: Sequence[int]) -> list[Any]:
        """Return a room of at least each size in bytes; what doesn't fit it, the library grows."""
        free = [i for i in range(len(self._rooms)) if _references(self._rooms, i) == _UNUSED]
        taken = []
        for size in sizes:
            place = next((i for i in free if self._sizes[i] >= size), None)
            if place is None:
                # Plain memory: page-locked memory takes long to get, and to give back stops the
                # GPU.
                room = self._library.CodeStream(size, False)
                place = free[0] if free else len(self._rooms)
                self._rooms[place : place + 1], self._sizes[place : place + 1] = [room], [size]
            if place in free:
                free.remove(place)
            taken.append(self._rooms[place])
        return taken

    def keep(self, count: int) -> None:
        """Let go of all rooms but some."""
        del self._rooms[count:], self._sizes[count:]


def _decoder(library: Any, index: int) -> Any:
    for kind in _DECODERS:
        with contextlib.suppress(RuntimeError):
            return library.Decoder(
                device_id=index,
                max_num_cpu_threads=_DECODER_THREADS,
                backends=[_backend(library, kind)],
                options=_OPTIONS,
            )
    raise RuntimeError("it has no JPEG decoder for this GPU; is nvidia-nvjpeg installed?")


def _backend(library: Any, name: str) -> Any:
    return library.Backend(getattr(library.BackendKind, name))


@contextlib.contextmanager
def _guarded(coder: Coder) -> Iterator[None]:
    """Turn whatever the library raises into an error of ours."""
    try:
        yield
    except Exception as error:
        coder.failed = True
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, MemoryError) or "out of memory" in text or "allocat" in text.lower():
            raise OutOfMemoryError(f"nvImageCodec: {text}") from error
        raise DeviceError(f"nvImageCodec: {text}") from error


def _on_device(image: Any) -> DeviceImage:
    told = image.__cuda_array_interface__
    height, width, channels = told["shape"] if len(told["shape"]) == 3 else (*told["shape"], 1)
    strides = told.get("strides")
    pitch = width * channels if strides is None else strides[0]
    spec = ImageSpec(height, width, channels, _DTYPES.get(told["typestr"], told["typestr"]))
    return DeviceImage(told["data"][0], pitch, spec, image)


_DTYPES = {"|u1": "uint8", "<u2": "uint16"}


def _whole(code: Any) -> memoryview | None:
    """The bytes of a code stream, if it is a JPEG from its start to its end."""
    if code is None:
        return None
    view = memoryview(code).cast("B")
    return view if view[:2] == _START and view[-2:] == _END else None
