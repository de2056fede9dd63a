"""How a run is to go, and where its images come from and go to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cvcli.batch.album import Care
from cvcli.batch.device import CodecChoice
from cvcli.batch.sinks import Sink
from cvcli.batch.sources import Files

if TYPE_CHECKING:
    from cvcli.batch.feed import Feed


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: ``None`` leaves a choice to the machine."""

    device: str = "auto"
    codec: CodecChoice = "auto"
    batch_size: int | None = None
    streams: int = 2
    jobs: int | None = None
    quality: int | None = None
    overwrite: bool = False
    fail_fast: bool = False
    max_pixels: int | None = None
    max_errors: int | None = None
    max_memory: int | None = None
    fail_on: str = "error"
    care: Care = field(default_factory=Care)
    """What becomes of what a file holds beside plain pixels."""

    @property
    def most_failures(self) -> int:
        """How many failures end the run."""
        return 1 if self.fail_fast else self.max_errors or sys.maxsize


@dataclass(frozen=True, slots=True)
class Ends:
    """Where images come from and go to; ``feed`` gives more jobs while the run goes on."""

    source: Files
    sink: Sink
    feed: Feed | None = None
