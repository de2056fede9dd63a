"""Launch geometry of the CUDA schedules; mirrors ``kernels/core/geometry.h``."""

from cvcli.devices.base import Kernel, Launch

WARPS = 8
SEGMENT_NBYTES = 1920
MAX_GRID = 65535
_ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}


def segment_pixels(pixel_nbytes: int) -> int:
    """Return how many pixels of one row a warp takes."""
    return SEGMENT_NBYTES // pixel_nbytes


def tile_pixels(pixel_nbytes: int) -> int:
    """Return the side of a tile of a transposed move."""
    return 64 if pixel_nbytes <= 4 else 32


def _pixel_nbytes(kernel: Kernel) -> int:
    return _ITEMSIZE[kernel.dtype] * kernel.channels


def grid_of(launch: Launch) -> tuple[int, int, int]:
    """Return the grid: x and y cover the largest image, z the batch."""
    nbytes = _pixel_nbytes(launch.kernel)
    if launch.kernel.tile is not None:
        wide, high = launch.kernel.tile
    elif launch.kernel.pattern == "map_tiles":
        wide = high = tile_pixels(nbytes)
    else:
        wide, high = segment_pixels(nbytes), WARPS
    x, y = -(-launch.width // wide), -(-launch.height // high)
    return x, min(y, MAX_GRID), min(launch.count, MAX_GRID)
