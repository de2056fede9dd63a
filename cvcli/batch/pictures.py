"""How many pictures inputs hold, for those of which each picture becomes a file of its own."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cvcli.batch.places import place
from cvcli.batch.storage import storage_of
from cvcli.errors import ImageError

# Opening files is mostly waiting, on a network more than anywhere.
_THREADS = 8


def counted(paths: Sequence[str]) -> list[int]:
    """Return for each file how many pictures it holds; 1 for one that can't be read."""
    if len(paths) < 2:
        return [_in_file(path) for path in paths]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_in_file, paths))


def counted_in(data: bytes) -> int:
    """Return how many pictures a file in memory holds."""
    from cvcli.codecs import count

    return count(io.BytesIO(data))


def _in_file(path: str) -> int:
    from cvcli.codecs import count

    where = place(path)
    try:
        if not isinstance(where, Path):
            return counted_in(storage_of(where).read(where, stamped=False)[0])
        with where.open("rb") as file:
            return count(file)
    except (OSError, ImageError):
        return 1
