from typing import Annotated

from cvcli.core.patterns.clahe_tables import Clahe, Grid
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops._operator import operator
from cvcli.ops._params import Param


@operator(
    cases=({}, {"clip_limit": 2, "tiles_x": 4, "tiles_y": 3}, {"clip_limit": 0, "tiles_x": 1})
)
def clahe(
    image: ImageSpec,
    clip_limit: Annotated[
        float, Param("How many times an even share a level may have; 0 for any.", min=0)
    ] = 40.0,
    tiles_x: Annotated[int, Param("Tiles side by side.", min=1, max=256)] = 8,
    tiles_y: Annotated[int, Param("Tiles on top of each other.", min=1, max=256)] = 8,
) -> Clahe:
    """Equalize the histogram tile by tile, with limited contrast (CLAHE).

    Zuiderveld's method ("Graphics Gems IV", 1994) as OpenCV computes it, on each channel of an
    8-bit image. Counts above the limit are spread over all levels; between the centres of tiles
    their results are interpolated. Alpha is left alone.
    """
    if image.dtype != "uint8":
        raise ParameterError(f"dtype must be uint8, got {image.dtype}")
    return Clahe(Grid(image, tiles_x, tiles_y, clip_limit))
