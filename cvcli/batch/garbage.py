"""The garbage collector, kept from stopping all threads of a run again and again."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made and not freed between two looks for garbage.
_GARBAGE = 100_000
_lock = threading.Lock()
_runs: list[tuple[tuple[int, int, int], bool]] = []


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage cycles seldom: a run makes none, and every look stops all its threads.

    Runs at the same time are one to the collector, which is the process's.
    """
    with _lock:
        _runs.append((gc.get_threshold(), gc.isenabled()) if not _runs else _runs[0])
        gc.set_threshold(_GARBAGE, *_runs[0][0][1:])
        gc.enable()
    try:
        yield
    finally:
        with _lock:
            before, enabled = _runs.pop()
            if not _runs:
                gc.set_threshold(*before)
                if not enabled:
                    gc.disable()
