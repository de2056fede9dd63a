"""What resampling an image is made of: passes, and steps around them."""

from __future__ import annotations

from dataclasses import replace

from cvcli.core.passes import Piece
from cvcli.core.patterns.resample import Resample
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ITEMSIZE, ImageSpec
from cvcli.core.taps import Span

# A struct is never empty.
_NONE = (0.0,)


def resample(
    image: ImageSpec,
    width: int,
    height: int,
    filter: str,
    *,
    antialias: bool,
    spans: tuple[Span | None, Span | None] = (None, None),
) -> tuple[Piece, ...]:
    """Return the parts that resize an image by a filter of `cvcli.core.taps`.

    Images with alpha are multiplied by it on the way in and divided by it on the way out; with
    more than 8 bits they are float32 in between. ``spans`` are those of `Resample`.
    """
    before, after, source = alpha_steps(image) if image.channels in (2, 4) else ((), (), image)
    target = replace(source, width=width, height=height)
    whole = Resample(source, target, filter, antialias=antialias, spans=spans)
    if not whole.is_slow:
        return (*before, whole, *after)
    if source.dtype == "uint16":
        # What is between the axes is float32.
        before = (Pixelwise("resize.Widen", _NONE, source.channels, "float32"),)
        after = (Pixelwise("resize.Narrow", _NONE, source.channels, "uint16"),)
        source = replace(source, dtype="float32")
    between = replace(source, width=width)
    target = replace(between, height=height)
    x = Resample(source, between, filter, antialias=antialias, spans=(spans[0], None))
    y = Resample(between, target, filter, antialias=antialias, spans=(None, spans[1]))
    return (*before, x, y, *after)


def alpha_steps(
    image: ImageSpec,
) -> tuple[tuple[Pixelwise, ...], tuple[Pixelwise, ...], ImageSpec]:
    """Return the steps that multiply an image by its alpha and divide it back, and what is between.

    With more than 8 bits what is between is float32.
    """
    dtype = "uint8" if image.dtype == "uint8" else "float32"
    before = Pixelwise("resize.Premultiply", _NONE, image.channels, dtype)
    bits = 8 * ITEMSIZE[image.dtype]
    after = Pixelwise(f"resize.Unpremultiply{bits}", _NONE, image.channels, image.dtype)
    return (before,), (after,), replace(image, dtype=dtype)
