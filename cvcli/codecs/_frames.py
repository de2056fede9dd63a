"""Files of several pictures: animations by Pillow, composed to whole frames, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cvcli.codecs._base import Header
from cvcli.codecs._metadata import Metadata
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

# Formats that play their pictures; TIFF has pages instead.
ANIMATED = frozenset(("GIF", "WEBP", "PNG", "AVIF"))
# Of these each picture counts; what else a JPEG holds is a preview or a second view.
SERIES = ANIMATED | {"TIFF"}


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a file: ``read`` writes its pixels, of ``header.spec``, into an array.

    ``duration`` is in ms; ``metadata`` is given where it is the picture's own, as of a page.
    """

    header: Header
    read: Callable[[Pixels], None]
    duration: float = 0.0
    metadata: Metadata | None = None


def holds_all(source: str, format: str) -> bool:
    """Whether ``format`` can hold all pictures of a file of the format ``source``.

    Pages hold frames, but don't play.
    """
    return format == "TIFF" or (source in ANIMATED and format in ANIMATED)


def animation(data: bytes, header: Header) -> Iterator[Frame]:
    """Whole frames in order, whatever the file stores of each; or pictures of several sizes."""
    from cvcli.codecs import _gif, pillow, png, webp

    refusals = {"GIF": _gif.refuse_cut, "WEBP": webp.refuse_cut, "PNG": png.refuse_cut}
    if header.format in refusals:
        refusals[header.format](data)
    if header.format == "PNG" and header.spec.dtype == "uint16":
        yield from _deep_animation(data, header)
        return
    image = pillow.opened(data, header.format)
    # A picture for readers that don't know animations is not part of it.
    first = 1 if image.info.get("default_image") else 0
    for number in range(header.frames):
        try:
            image.seek(first + number)
            image.load()
        except EOFError as error:
            raise ImageError(f"truncated {header.format} data") from error
        spec = pillow.spec(image)
        yield Frame(
            replace(header, spec=spec), _reader(image, spec), float(image.info.get("duration") or 0)
        )


def _reader(image: Any, spec: ImageSpec) -> Callable[[Pixels], None]:
    from cvcli.codecs import pillow

    def read(out: Pixels) -> None:
        out[...] = pillow.pixels(image, spec)

    return read


def _deep_animation(data: bytes, header: Header) -> Iterator[Frame]:
    """Frames of 16 bits, which Pillow would cut to 8."""
    import imagecodecs

    from cvcli.codecs import _apng

    whole = imagecodecs.apng_decode(data)
    if header.frames == 1 and whole.shape[:2] == header.spec.shape[:2]:
        whole = whole[None]
    frames = whole.reshape(len(whole), *header.spec.shape[:2], -1)[-header.frames :]
    for pixels, duration in zip(frames, _apng.durations(data), strict=False):
        spec = replace(header.spec, channels=pixels.shape[2])
        yield Frame(replace(header, spec=spec), _copier(pixels), duration)


def _copier(pixels: Pixels) -> Callable[[Pixels], None]:
    def read(out: Pixels) -> None:
        out[...] = pixels

    return read
