"""The garbage collector, kept from stopping all threads of a run again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made and not freed between two looks for garbage.
_GARBAGE = 100_000


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage cycles seldom: a run makes none, and every look stops all its threads."""
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(_GARBAGE, *before[1:])
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not enabled:
            gc.disable()
