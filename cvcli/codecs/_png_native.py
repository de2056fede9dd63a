"""PNG of 8-bit gray and colour, with and without alpha, by our own filters and libdeflate.

It takes a third of the time of libpng with zlib. Whatever is unusual is left to libpng: palettes,
other depths, interlacing, and files with a fault, about which it has the last word.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cvcli.codecs._base import Pixels

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
_PLAIN = frozenset((b"IHDR", b"PLTE", b"IDAT", b"IEND"))
_END = b"\0\0\0\0IEND\xae\x42\x60\x82"
# Memory a thread keeps for what is packed or filtered; larger images take libpng's way, by rows.
_MOST_ROOM = 1 << 26
_thread = threading.local()

# A chunk: its name, and where its body starts and ends.
Chunk = tuple[bytes, int, int]


@cache
def _library() -> Any:
    from cvcli.devices.cpu import native

    library = native()
    pointer, size, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    library.cvcli_png_unfilter.argtypes = (pointer, pointer, size, size, size, number)
    library.cvcli_png_deflate.argtypes = (pointer, *(size,) * 3, number, pointer, pointer)
    library.cvcli_png_most.argtypes = (size, size)
    library.cvcli_png_scratch.argtypes = (size,)
    for name in ("deflate", "most", "scratch"):
        getattr(library, f"cvcli_png_{name}").restype = size
    return library


def _room(name: str, nbytes: int) -> Pixels:
    """This thread's memory of a name: new memory for each image takes longer than to fill it."""
    import numpy as np

    room: Pixels | None = getattr(_thread, name, None)
    if room is None or room.size < nbytes:
        room = np.empty(nbytes, np.uint8)
        setattr(_thread, name, room)
    return room


def decode(data: bytes, chunks: Sequence[Chunk], out: Pixels) -> bool:
    """Decode into ``out`` (h, w, c) of uint8; False if the file is not as plain as that."""
    height, width, channels = out.shape
    nbytes = width * channels
    raw = height * (1 + nbytes)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    if data[16:29] != head or raw > _MOST_ROOM or out.dtype.itemsize != 1:
        return False
    if not all(_is_sound(data, chunk) for chunk in chunks if chunk[0] in _PLAIN):
        return False
    packed = _packed(data, chunks)
    room = _room("raw", raw)
    if packed is None or not _inflate(packed, room[:raw]):
        return False
    rows = room.ctypes.data, out.ctypes.data, out.strides[0], height, nbytes, channels
    return bool(_library().cvcli_png_unfilter(*rows) == 0)


def _is_sound(data: bytes, chunk: Chunk) -> bool:
    _, start, end = chunk
    stored: int = struct.unpack_from(">I", data, end)[0]
    return zlib.crc32(memoryview(data)[start - 4 : end]) == stored


def _packed(data: bytes, chunks: Sequence[Chunk]) -> bytes | memoryview | None:
    """The bodies of the IDAT chunks as one; None if they don't follow each other."""
    places = [number for number, chunk in enumerate(chunks) if chunk[0] == b"IDAT"]
    if not places or places[-1] - places[0] != len(places) - 1:
        return None
    bodies = [memoryview(data)[chunks[number][1] : chunks[number][2]] for number in places]
    return bodies[0] if len(bodies) == 1 else b"".join(bodies)


def _inflate(packed: bytes | memoryview, out: Pixels) -> bool:
    """Inflate a zlib stream; False unless it is sound and fills ``out``."""
    import imagecodecs

    # Memory that is only lent: imagecodecs never lets go of the array of a decode that fails.
    memory = (ctypes.c_char * out.nbytes).from_address(out.ctypes.data)
    stream: Any = packed
    try:
        found = imagecodecs.deflate_decode(stream, out=memoryview(memory).cast("B"))
    except imagecodecs.DeflateError:
        return False
    return len(found) == out.size


def encode(packed: Pixels) -> bytes | None:
    """A PNG of packed pixels (h, w, c) of uint8; None for what libpng should write."""
    height, width, channels = packed.shape
    nbytes = width * channels
    library = _library()
    most = library.cvcli_png_most(height, nbytes)
    if packed.dtype.itemsize != 1 or most > _MOST_ROOM or min(height, width) < 1:
        return None
    room, scratch = _room("file", most), _room("rows", library.cvcli_png_scratch(nbytes))
    places = scratch.ctypes.data, room.ctypes.data
    size = library.cvcli_png_deflate(
        packed.ctypes.data, packed.strides[0], height, nbytes, channels, *places
    )
    body = room.data[:size]
    head = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, _COLOURS[channels], 0, 0, 0)
    crc = zlib.crc32(body, zlib.crc32(b"IDAT"))
    parts: list[bytes | memoryview] = [
        SIGNATURE,
        struct.pack(">I", 13),
        head,
        struct.pack(">I", zlib.crc32(head)),
    ]
    parts += [struct.pack(">I4s", size, b"IDAT"), body, struct.pack(">I", crc), _END]
    return b"".join(parts)
