from typing import Annotated, Literal

from cvcli.core.move import gather
from cvcli.core.passes import Lowered
from cvcli.core.resample import resample
from cvcli.core.spec import ImageSpec
from cvcli.core.taps import nearest
from cvcli.errors import ParameterError
from cvcli.ops._geometry import scaled_size, size_of
from cvcli.ops._operator import operator
from cvcli.ops._params import Geometry, Level, Param, level

Filter = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

# More than any format holds on a side, and few enough to count taps safely.
_MOST = 10_000_000
_MOST_PIXELS = 1 << 36


@operator(
    exclusive=(
        ("geometry", "width"),
        ("geometry", "height"),
        ("geometry", "scale"),
        ("scale", "width"),
        ("scale", "height"),
    ),
    cases=(
        {"width": 20, "height": 31},
        {"width": 70, "height": 9, "filter": "nearest"},
        {"geometry": "50%", "filter": "box"},
        {"geometry": "300x200>", "filter": "hamming"},
        {"width": 33, "height": 100, "filter": "bicubic"},
        {"scale": "50%", "filter": "lanczos"},
        {"scale": 0.3, "antialias": False},
        {"width": 64, "filter": "bicubic", "antialias": False},
    ),
)
def resize(
    image: ImageSpec,
    width: Annotated[int | None, Param("Width of the result.", min=1, max=_MOST, unit="px")] = None,
    height: Annotated[
        int | None, Param("Height of the result.", min=1, max=_MOST, unit="px")
    ] = None,
    scale: Annotated[Level | None, Param("Factor of both sides, as 0.5 or 50%.")] = None,
    filter: Annotated[Filter, Param("How new samples are made from old ones.")] = "bilinear",
    antialias: Annotated[
        bool, Param("Take all samples into account where the image gets smaller.")
    ] = True,
    geometry: Annotated[
        Geometry | None,
        Param(
            "WIDTHxHEIGHT fits inside and keeps the shape; WIDTHx and xHEIGHT; N% or N%xN%; then > "
            "only shrinks, < only enlarges, ^ covers, ! is exact.",
            positional=True,
        ),
    ] = None,
) -> Lowered:
    """Resize the image.

    Give a geometry, a scale, or a width and a height; with one of those two alone the other side
    keeps the image's shape. No side gets shorter than a pixel.

    Rows first, then columns, each result sample being a weighted mean of those around it: box (an
    area), bilinear (a triangle), hamming (a sinc of radius 1 under a Hamming window), bicubic
    (Keys, a = -0.5), lanczos (radius 3); nearest takes one. Pixel centres lie at halves, weights
    are cut off at the edges and normalised. With antialias their support grows with the factor of
    a reduction. For uint8 weights are 22-bit fixed point and each of the two steps rounds: the
    bytes are those of Pillow's resize (Pillow 13 takes columns first where it removes more than
    twice as many rows as columns, and then differs in rounding). uint16 and float32 images have
    float32 weights and sums, rounded once. Colour is multiplied by alpha first and divided by it
    at the end, except by nearest. A NaN or infinity spreads as far as the weights reach.

    CV-CUDA's resize never antialiases; its cubic has a = -0.75, and its area filter is no box.
    """
    target = _target(image, width, height, scale, geometry)
    if max(target) > _MOST:
        raise ParameterError(f"a side must be <= {_MOST} px, got {target[0]}x{target[1]}")
    if target[0] * target[1] > _MOST_PIXELS:
        raise ParameterError(f"the result must fit in memory, got {target[0]}x{target[1]}")
    if target == (image.width, image.height):
        return gather(image)
    if filter == "nearest":
        return gather(image, y=nearest(image.height, target[1]), x=nearest(image.width, target[0]))
    return resample(image, *target, filter, antialias=antialias)


def _target(
    image: ImageSpec,
    width: int | None,
    height: int | None,
    scale: Level | None,
    geometry: Geometry | None,
) -> tuple[int, int]:
    source = image.width, image.height
    if geometry is not None:
        return size_of(geometry, *source)
    if scale is not None:
        factor = level(scale, 1.0)
        if not factor > 0:
            raise ParameterError(f"scale must be > 0, got {scale}")
        return scaled_size(factor, *source)
    if width is None and height is None:
        raise ParameterError(
            "a size must be given", tip="as a geometry such as 640x480 or 50%, or as a width"
        )
    if width is not None and height is not None:
        return width, height
    return size_of(f"{width or ''}x{height or ''}", *source)
