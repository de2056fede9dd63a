"""A proxy over a device that counts the barriers put into it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

_COUNTED = (
    "wait_event",
    "record_event",
    "synchronize",
    "synchronize_stream",
    "synchronize_event",
)


class Counts:
    """The calls of a device since the last `clear`: names and arguments."""

    def __init__(self):
        self.calls = []

    def clear(self):
        self.calls.clear()

    def of(self, name):
        return sum(called == name for called, _ in self.calls)

    def waits_of(self, stream):
        """How often a stream was made to wait."""
        return sum(n == "wait_event" and args[0] == int(stream) for n, args in self.calls)

    def barriers(self):
        """Waits of any kind, by a stream or by the host."""
        return sum(name != "record_event" for name, _ in self.calls)


@contextmanager
def counted(device):
    """Count calls of a device; to be entered before its engine is made, where that is possible."""
    counts = Counts()
    with pytest.MonkeyPatch.context() as patch:
        for name in _COUNTED:
            patch.setattr(device, name, _counting(counts, name, getattr(device, name)))
        yield counts


def _counting(counts, name, function):
    def call(*args, **kwargs):
        counts.calls.append((name, args))
        return function(*args, **kwargs)

    return call
