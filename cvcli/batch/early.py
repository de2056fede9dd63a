"""The process that the workers of a local cluster are forked from, started before all else.

It imports Dask and the codecs while this one imports its own part and plans.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def prepare_for(words: Sequence[str]) -> None:
    """Start the process if a command line asks for a local cluster."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == "--cluster":
            prepare(value if equals else after)


def prepare(address: str) -> None:
    """Start the process if an address is ``local:N``, once."""
    if re.fullmatch(r"local:[0-9]+", address) is None or sys.platform == "win32":
        return
    from multiprocessing import forkserver, set_forkserver_preload

    set_forkserver_preload(["distributed", "cvcli.batch.warm"])
    with _without_interrupts():
        forkserver.ensure_running()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that are started not heed Ctrl-C: this one tells them to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
