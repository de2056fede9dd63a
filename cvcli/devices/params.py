"""The parameter blocks of ``kernels/core/image.h``, packed the same on both sides."""

from ctypes import Structure, c_int32, c_int64, c_void_p


class Image(Structure):
    """One image: pointer, size in pixels, bytes from one row to the next."""

    _fields_ = (
        ("data", c_void_p),
        ("height", c_int32),
        ("width", c_int32),
        ("row_pitch", c_int64),
    )


class Images(Structure):
    """A batch: ``list[i]`` if there is a list, else ``first`` moved on by ``i * stride`` bytes."""

    _fields_ = (("first", Image), ("stride", c_int64), ("list", c_void_p))


class Axis(Structure):
    """Where a destination index reads on one axis: a run of step 1 or -1, a map for the rest."""

    _fields_ = (
        ("map", c_void_p),
        ("run_begin", c_int32),
        ("run_end", c_int32),
        ("run_source", c_int32),
        ("run_step", c_int32),
    )


class Move(Structure):
    """A gather by one index map an axis."""

    _fields_ = (
        ("x", Axis),
        ("y", Axis),
        ("constants", c_void_p),
        ("transpose", c_int32),
        ("reserved", c_int32),
    )


class MapArgs(Structure):
    """Arguments of every pattern: ``moves[i]`` if given, else ``move`` for every image.

    ``aux`` is a second batch to read, for the patterns that take one.
    """

    _fields_ = (
        ("src", Images),
        ("dst", Images),
        ("count", c_int32),
        ("reserved", c_int32),
        ("move", Move),
        ("moves", c_void_p),
        ("table", c_void_p),
        ("aux", Images),
    )


class Frame(Structure):
    """First in the parameters of each pattern but the maps.

    The size of what the pattern reads, after the gather; the place of the result's first pixel in
    the whole result; and how many rows of work the image is.
    """

    _fields_ = (
        ("height", c_int32),
        ("width", c_int32),
        ("y0", c_int32),
        ("x0", c_int32),
        ("rows", c_int32),
        ("reserved", c_int32),
    )


BLOCKS: tuple[type[Structure], ...] = (Image, Images, Axis, Move, MapArgs, Frame)
