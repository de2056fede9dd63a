"""What a run that is stopped early owes to what it has done, and to other runs beside it."""

import gc
import os
import tarfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

from cvcli.batch.garbage import few_collections
from cvcli.batch.plan import Job
from cvcli.batch.run import Runner
from cvcli.batch.sinks import TarSink
from cvcli.batch.sources import Held
from cvcli.batch.state import State


def test_a_tar_gets_what_is_done_behind_an_image_that_was_put_back(tmp_path):
    back, done = (Job(i, Path(f"{i}.png"), Path(f"{i}.png"), "PNG") for i in range(2))
    with (tmp_path / "out.tar").open("wb") as file:
        sink = TarSink(file.fileno())
        for job in (back, done):
            sink.started(job)
        sink.put(done, [(b"pixels",)], None)
        assert os.fstat(file.fileno()).st_size == 0
        runner = Runner.__new__(Runner)
        runner._state = State([back], 1, sink, lambda: 1 << 20, None, more=False)
        runner._ends = SimpleNamespace(source=Held(), sink=sink)
        runner._stop(discard=False)
        sink.close()
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert tar.getnames() == ["1.png"]


def test_runs_at_the_same_time_leave_the_garbage_collector_as_it_was():
    before, was = gc.get_threshold(), gc.isenabled()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(few_collections())
        second.enter_context(few_collections())
        first.close()
        assert gc.get_threshold()[0] > before[0]
        second.close()
        assert (gc.get_threshold(), gc.isenabled()) == (before, was)
