"""What a second Ctrl-C does, and what SIGTERM does."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cvcli.batch.files import remove_active
from cvcli.errors import EXIT_INTERRUPTED


@contextmanager
def ending_at_once_if_interrupted_again() -> Iterator[None]:
    """Let a second Ctrl-C end the process without waiting, but not without cleaning up."""

    def end(signal_number: int, frame: object) -> None:
        remove_active()
        os._exit(EXIT_INTERRUPTED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a run ends as after Ctrl-C, in order."""


@contextmanager
def ending_in_order_if_terminated() -> Iterator[None]:
    """Raise `Terminated` in the main thread on SIGTERM, which service managers send."""

    def end(signal_number: int, frame: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
