"""Launch geometry of the CUDA schedules; mirrors ``kernels/core/geometry.h``."""

from cvcli.devices.base import Kernel, Launch
from cvcli.errors import DeviceError

WARPS = 8
SEGMENT_NBYTES = 1920
BLOCKS_PER_PROCESSOR = 1024
MAX_PARTS = (1 << 32) - (1 << 20)
_ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}


def segment_pixels(pixel_nbytes: int) -> int:
    """Return how many pixels of one row a warp takes."""
    return SEGMENT_NBYTES // pixel_nbytes


def tile_pixels(pixel_nbytes: int) -> int:
    """Return the side of a tile of a transposed move."""
    return 64 if pixel_nbytes <= 4 else 32


def _pixel_nbytes(kernel: Kernel) -> int:
    return _ITEMSIZE[kernel.dtype] * kernel.channels


def parts_of(launch: Launch) -> int:
    """Return how many segments or tiles the largest image is cut into."""
    nbytes = _pixel_nbytes(launch.kernel)
    if launch.kernel.pattern == "map_tiles":
        side = tile_pixels(nbytes)
        return -(-launch.height // side) * -(-launch.width // side)
    return launch.height * -(-launch.width // segment_pixels(nbytes))


def grid_of(launch: Launch, processors: int) -> int:
    """Return the number of blocks for a GPU of so many multiprocessors; raise `DeviceError`."""
    total = parts_of(launch) * launch.count
    if total > MAX_PARTS:
        raise DeviceError(f"a batch of {launch.count} images is too large for one launch")
    blocks = total if launch.kernel.pattern == "map_tiles" else -(-total // WARPS)
    return min(blocks, processors * BLOCKS_PER_PROCESSOR)
