"""Launch geometry of the CUDA schedules; mirrors ``kernels/core/geometry.h``."""

from dataclasses import replace

from cvcli.devices.base import Kernel, Launch

WARPS = 8
SEGMENT_NBYTES = 1920
MAX_GRID = 65535
# A table of 65,536 entries of two bytes, and a stage for each warp beside it.
_TABLE_NBYTES, _TABLE_WARPS, _STAGE_NBYTES, _WARP = 1 << 17, 16, 2048, 32
_ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}


def segment_pixels(pixel_nbytes: int) -> int:
    """Return how many pixels of one row a warp takes."""
    return SEGMENT_NBYTES // pixel_nbytes


def tile_pixels(pixel_nbytes: int) -> int:
    """Return the side of a tile of a transposed move."""
    return 64 if pixel_nbytes <= 4 else 32


def with_room(kernel: Kernel, shared_nbytes: int) -> Kernel:
    """Return a kernel that keeps its 16-bit table in shared memory, if a block may have so much."""
    by_rows = kernel.tile is None and kernel.pattern != "map_tiles"
    if not by_rows or (kernel.dtype, kernel.functors) != ("uint16", ("table",)):
        return kernel
    if shared_nbytes < _TABLE_NBYTES + _TABLE_WARPS * _STAGE_NBYTES:
        return kernel
    return replace(kernel, threads=_TABLE_WARPS * _WARP, room=_TABLE_NBYTES)


def _pixel_nbytes(kernel: Kernel) -> int:
    return _ITEMSIZE[kernel.dtype] * kernel.channels


def lasting_grid(launch: Launch, blocks: int) -> tuple[int, int, int]:
    """Return the grid of about so many blocks that loop over the rows of all images."""
    x = -(-launch.width // segment_pixels(_pixel_nbytes(launch.kernel)))
    y = min(-(-launch.height // _TABLE_WARPS), max(1, blocks // x))
    return x, y, min(launch.count, max(1, blocks // (x * y)))


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
