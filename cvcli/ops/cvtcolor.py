from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from cvcli.core.passes import Lowered
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Param

if TYPE_CHECKING:
    import numpy as np
else:
    from cvcli.core.lazy import np

Code = Literal[
    "rgb2gray", "bgr2gray", "rgba2gray", "bgra2gray",
    "gray2rgb", "gray2bgr", "gray2rgba", "gray2bgra",
    "rgb2bgr", "bgr2rgb", "rgb2rgba", "bgr2bgra", "rgb2bgra", "bgr2rgba",
    "rgba2rgb", "bgra2bgr", "rgba2bgr", "bgra2rgb", "rgba2bgra", "bgra2rgba",
    "rgb2hsv", "bgr2hsv", "hsv2rgb", "hsv2bgr",
    "rgb2hsv_full", "bgr2hsv_full", "hsv2rgb_full", "hsv2bgr_full",
    "rgb2hls", "bgr2hls", "hls2rgb", "hls2bgr",
    "rgb2hls_full", "bgr2hls_full", "hls2rgb_full", "hls2bgr_full",
    "rgb2ycrcb", "bgr2ycrcb", "ycrcb2rgb", "ycrcb2bgr",
    "rgb2yuv", "bgr2yuv", "yuv2rgb", "yuv2bgr",
    "rgb2xyz", "bgr2xyz", "xyz2rgb", "xyz2bgr",
    "rgb2lab", "bgr2lab", "lab2rgb", "lab2bgr",
    "rgb2luv", "bgr2luv", "luv2rgb", "luv2bgr",
]  # fmt: skip

_SPACES = {
    "hsv": "Hsv",
    "hls": "Hls",
    "ycrcb": "Ycrcb",
    "yuv": "Yuv",
    "xyz": "Xyz",
    "lab": "Cielab",
    "luv": "Luv",
}
_NOT_UINT16 = ("hsv", "hls", "lab", "luv")


@operator(
    cases=(
        {"code": "rgb2gray"},
        {"code": "gray2rgba"},
        {"code": "bgr2rgba"},
        {"code": "rgb2hsv"},
        {"code": "hsv2bgr_full"},
        {"code": "rgb2hls"},
        {"code": "hls2rgb"},
        {"code": "rgb2ycrcb"},
        {"code": "yuv2rgb"},
        {"code": "bgr2xyz"},
        {"code": "rgb2lab"},
        {"code": "lab2rgb"},
        {"code": "rgb2luv"},
        {"code": "luv2rgb"},
    )
)
def cvtcolor(
    image: ImageSpec,
    code: Annotated[Code, Param("Colour space of the image, 2, colour space of the result.")],
) -> Lowered:
    """Convert between colour spaces.

    Values and their scaling are as OpenCV documents them. Gray is 0.299 R + 0.587 G + 0.114 B. In
    uint8 images the hue of HSV and HLS takes 180 steps, with _full 256 to HSV and 255 otherwise,
    as in OpenCV; in float32 images it is in degrees. Lab and Luv (sRGB, D65) of uint8 are scaled to
    0 to 255; in float32 L is 0 to 100. HSV, HLS, Lab and Luv are not defined for uint16. Alpha
    stays as it is, so that rgb2gray makes gray with alpha of it; a code that names rgba drops or
    adds it.
    """
    source, target = code.removesuffix("_full").split("2")
    _check(image, code, source, target)
    steps: list[Pixelwise] = []
    channels = image.channels
    for name in _functors(source, target, channels):
        channels += _ADDED.get(name, 0)
        if code.endswith("_full") and name != "Swapped":
            name += "Full"
        data = _light() if name in ("ToCielab", "ToLuv") else b""
        steps.append(Pixelwise(f"cvtcolor.{name}", (0.0,), channels, image.dtype, data))
    return tuple(steps)


_ADDED = {"WithAlpha": 1, "WithoutAlpha": -1, "ToGray": -2, "FromGray": 2}


def _check(image: ImageSpec, code: str, source: str, target: str) -> None:
    """Refuse images that the code is not made for."""
    channels: tuple[int, ...]
    if source == "gray":
        channels = (1, 2)
    elif source.endswith("a"):
        channels = (4,)
    else:
        channels = (3,) if target.endswith("a") else (3, 4)
    if image.channels not in channels:
        needed = " or ".join(map(str, channels))
        raise ParameterError(f"code {code} needs {needed} channels, got {image.channels}")
    space = source if source in _SPACES else target
    if image.dtype == "uint16" and space in _NOT_UINT16:
        raise ParameterError(
            f"code {code} needs uint8 or float32, got uint16",
            tip=f"convertto --dtype float32 --scale {1 / 65535:.9g} first",
        )


def _functors(source: str, target: str, channels: int) -> list[str]:
    """Return the functors to run in turn."""
    found = []
    if source.endswith("a") and not target.endswith("a"):
        found.append("WithoutAlpha")
    if source == "gray":
        found.append("FromGray")
    elif source in _SPACES:
        found.append(f"From{_SPACES[source]}")
    if source != "gray" and target != "gray" and ("bgr" in source) != ("bgr" in target):
        found.append("Swapped")
    if target == "gray":
        found += ["Swapped", "ToGray"] if "bgr" in source else ["ToGray"]
    elif target in _SPACES:
        found.append(f"To{_SPACES[target]}")
    if target.endswith("a") and channels in (1, 3):
        found.append("WithAlpha")
    return found


@cache
def _light() -> bytes:
    """Return the linear light of the 256 levels of sRGB (IEC 61966-2-1)."""
    v = np.arange(256) / 255
    light = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    return light.astype(np.float32).tobytes()
