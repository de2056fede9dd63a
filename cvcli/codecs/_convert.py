"""Pixels as a format can hold them: depths by scaling, alpha by flattening, colours to sRGB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

Colour = tuple[float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0)
_DEPTHS = ("float32", "uint16", "uint8")
# ITU-R BT.601, as gray is made of colours everywhere.
_LUMA = (0.299, 0.587, 0.114)


def parse_colour(text: str) -> Colour:
    """Red, green and blue, 0..1, of a name, ``#rrggbb`` or ``rgb(r,g,b)``; ParameterError."""
    if text == "white":
        # The default must not cost the loading of a library.
        return WHITE
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(text)[:3]
    except ValueError:
        message = f"background must be a colour such as white or #ffcc00, got {text!r}"
        raise ParameterError(message) from None
    return red / 255, green / 255, blue / 255


def candidates(spec: ImageSpec) -> Iterator[ImageSpec]:
    """What an image may be turned into, what loses least first: depth goes before alpha."""
    depths = _DEPTHS[_DEPTHS.index(spec.dtype) :]
    counts = (spec.channels, spec.channels - 1) if spec.channels in (2, 4) else (spec.channels,)
    for channels in counts:
        for dtype in depths:
            yield replace(spec, channels=channels, dtype=dtype)


def losses(
    spec: ImageSpec, target: ImageSpec, reason: Callable[[ImageSpec], str | None]
) -> tuple[str, ...]:
    """A sentence for each thing that is lost; ``reason`` says why a spec can't be held."""
    whole = []
    if spec.dtype != target.dtype:
        deep = ImageSpec(1, 1, target.channels, spec.dtype)
        whole.append(f"{reason(deep)}: scaled to {target.dtype}")
    if spec.channels != target.channels:
        clear = ImageSpec(1, 1, spec.channels, target.dtype)
        whole.append(f"{reason(clear)}: flattened on the background")
    return tuple(whole)


def converted(image: Pixels, spec: ImageSpec, background: Colour) -> Pixels:
    """``image`` of the layout of ``spec`` as its channels and dtype; itself if it has them."""
    if image.shape[2] != spec.channels and not spec.planar:
        image = _flattened(image, background)
    return image if image.dtype.name == spec.dtype else _scaled(image, spec.dtype)


def _flattened(image: Pixels, background: Colour) -> Pixels:
    import numpy as np

    top = 1.0 if image.dtype.kind == "f" else float(np.iinfo(image.dtype).max)
    count = image.shape[2] - 1
    behind = background if count == 3 else (float(np.dot(_LUMA, background)),)
    alpha = np.clip(image[:, :, -1:].astype(np.float64) / top, 0, 1)
    shown = image[:, :, :-1] * alpha + np.array(behind) * top * (1 - alpha)
    if image.dtype.kind != "f":
        shown = np.rint(shown)
    flat: Pixels = shown.astype(image.dtype)
    return flat


def _scaled(image: Pixels, dtype: str) -> Pixels:
    import numpy as np

    if image.dtype.kind == "f":
        white = np.iinfo(dtype).max
        unit = np.nan_to_num(np.clip(image.astype(np.float64), 0, 1))
        scaled: Pixels = np.rint(unit * white).astype(dtype)
        return scaled
    # 65535 is 257 times 255.
    scaled = ((image.astype(np.uint32) + 128) // 257).astype(dtype)
    return scaled


@cache
def _srgb() -> bytes:
    from PIL import ImageCms

    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def to_srgb(pixels: Pixels, profile: bytes) -> None:
    """Convert the colours of ``pixels`` (h, w, 3|4) in place, at their own depth; alpha stays.

    Raises whatever LittleCMS has against the profile.
    """
    if pixels.shape[2] < 3:
        pixels[:, :, 0] = _gray_to_srgb(pixels[:, :, 0], profile)
    else:
        pixels[:, :, :3] = _transformed(pixels[:, :, :3], profile, "rgb")


def _gray_to_srgb(gray: Pixels, profile: bytes) -> Pixels:
    """Through a table where there is one: LittleCMS's own shortcut is 9 levels off in the dark."""
    import numpy as np

    exact = 0x0100
    if gray.dtype.kind == "f":
        return _transformed(gray, profile, "gray", exact)[:, :, 0]
    values = np.arange(np.iinfo(gray.dtype).max + 1, dtype=gray.dtype)[None]
    table: Pixels = _transformed(values, profile, "gray", exact)[0, :, 0]
    return table[gray]


def _transformed(colours: Pixels, profile: bytes, space: str, flags: int | None = None) -> Pixels:
    """RGB (h, w, 3) of colours in a profile's space."""
    import imagecodecs
    import numpy as np

    result: Pixels = imagecodecs.cms_transform(
        np.ascontiguousarray(colours),
        profile,
        _srgb(),
        colorspace=space,
        outcolorspace="rgb",
        flags=flags,
    )
    return result


def cmyk_to_rgb(image: Any, profile: bytes) -> Any:
    """A Pillow image in CMYK as RGB through its profile; None if that can't be used."""
    import io

    from PIL import ImageCms

    if profile[16:20] != b"CMYK":
        return None
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, source, target, outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
