"""What the command of a cluster and its workers hold for themselves: memory, threads, garbage."""

import gc
import threading
import time
from dataclasses import replace

import pytest
from conftest import noise
from distributed import LocalCluster
from test_cli import contents, files_in, save
from test_cluster import FLIP, HALF_TURN, run

from cvcli.batch import cluster as clusters
from cvcli.batch import workers
from cvcli.batch.cluster import run_on_cluster
from cvcli.batch.options import Ends, Options
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import Runner
from cvcli.batch.sinks import FileSink
from cvcli.batch.sources import Files
from cvcli.batch.workers import at_once, do, stop
from cvcli.errors import DeviceError

COUNT, SLOTS, LIMIT = 24, 3, 2_000_000


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for index in range(COUNT):
        save(tmp_path / "in" / f"{index:02}.png", noise((9, 7 + index, 3), "uint8", index))
    return tmp_path


@pytest.fixture
def worker():
    """The address of a scheduler whose one worker, in this process, does three pieces at a time."""
    how = {"processes": False, "protocol": "tcp", "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=SLOTS, **how) as own:
        yield own.scheduler_address


class Watched(Runner):
    """A run that is known to the test while it lasts."""

    under_way: list["Watched"] = []  # noqa: RUF012
    most_memory, threads = 0, set()
    lock = threading.Lock()

    def run(self, tick):
        with self.lock:
            self.under_way.append(self)
            Watched.most_memory = max(
                self.most_memory, sum(one._options.max_memory or LIMIT for one in self.under_way)
            )
            self.threads.add(self._jobs)
        try:
            time.sleep(0.02)  # the others come meanwhile, if they may
            super().run(tick)
        finally:
            with self.lock:
                self.under_way.remove(self)


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(Watched, "most_memory", 0)
    monkeypatch.setattr(Watched, "threads", set())
    monkeypatch.setattr(workers, "Runner", Watched)
    return Watched


def dispatched(here, address, tick=lambda report: None, **options):
    plan = make_plan([here / "in"], here / "out")
    report = Report(plan)
    ends = Ends(Files(), FileSink())
    run_on_cluster(plan, HALF_TURN, Options(device="cpu", **options), report, tick, ends, address)
    return report


def test_pieces_of_a_worker_share_what_memory_it_may_fill(here, worker, watched):
    report = dispatched(here, worker, max_memory=LIMIT, jobs=2)
    assert (report.images, len(files_in(here / "out"))) == (COUNT, COUNT)
    assert watched.most_memory == LIMIT
    assert watched.threads == {2 * SLOTS}
    run(*FLIP, "in", "one", "-q")
    assert contents(here / "out") == contents(here / "one")


def test_pieces_without_a_limit_run_side_by_side(here, worker, watched):
    assert dispatched(here, worker, jobs=2).images == COUNT
    assert LIMIT < watched.most_memory <= SLOTS * LIMIT
    assert watched.threads == {2}


def test_pieces_that_a_worker_does_at_once():
    assert at_once(4, {}, {}) == 4
    assert at_once(4, {"GPU": 2.0}, {"GPU": 1}) == 2
    assert at_once(4, {"MEM": 9.0}, {"GPU": 1}) == 0


def work_of(here, name, **options):
    jobs = make_plan([here / "in" / name], here / "out").jobs
    how = Options(device="cpu", jobs=1, **options)
    ends = Ends(Files(), FileSink())
    chain = str(HALF_TURN)
    return workers.Work(name, 1, workers.__version__, chain, how, ends, jobs, {}, {})


def test_a_piece_that_waits_for_memory_ends_when_the_run_does(here):
    work, parts = work_of(here, "00.png", max_memory=LIMIT), []
    waiting = threading.Thread(target=lambda: parts.append(do(work)), daemon=True)
    with workers._TURN:
        waiting.start()
        time.sleep(0.05)
        stop(work.run)
        waiting.join(timeout=20)
        assert [row.status for part in parts for row in part.rows] == ["planned"]


def test_garbage_is_collected_while_a_cluster_works(here, worker):
    """The command turns collections off while it starts; Dask makes cycles as long as it runs."""
    seen = []
    gc.disable()
    try:
        dispatched(here, worker, lambda report: seen.append(gc.isenabled()), jobs=1)
        assert seen and all(seen) and not gc.isenabled()
    finally:
        gc.enable()


def test_workers_are_left_to_count_their_own_threads(here, monkeypatch):
    """One process takes many threads to wait for a network; workers share their cores."""
    asked = []
    monkeypatch.setattr(clusters, "run_on_cluster", lambda *given: asked.append(given[2].jobs))
    run(*FLIP, "in", "memory://out", "-q", "--cluster", "tcp://127.0.0.1:9")
    run(*FLIP, "in", "memory://out", "-q", "--cluster", "tcp://127.0.0.1:9", "--threads", "3")
    assert asked == [None, 3]


class Ended:
    """What has become of a piece, as Dask tells it."""

    def __init__(self, part=None, error=None):
        self.status, self._part, self._error = "error" if error else "finished", part, error

    def done(self):
        return True

    def result(self):
        return self._part

    def exception(self):
        return self._error

    def release(self):
        pass

    def add_done_callback(self, tell):
        pass


class Client:
    status = "running"

    def __init__(self):
        self.stopped, self.cancelled = [], []

    def scheduler_info(self, n_workers):
        return {"workers": {}}

    def run(self, function, run, on_error):
        self.stopped.append(run)

    def cancel(self, futures):
        self.cancelled.append(futures)


def test_a_run_that_ends_early_takes_what_is_done_behind_a_piece_that_failed(here):
    (here / "out").mkdir()
    plan = make_plan([here / "in"], here / "out")
    report, client = Report(plan), Client()
    ends = Ends(Files(), FileSink())
    options = Options(device="cpu", jobs=1)
    dispatch = clusters._Dispatch(client, {}, plan, HALF_TURN, options, report, ends)
    works = [replace(dispatch._work, number=i, jobs=(plan.jobs[i],)) for i in range(2)]
    dispatch._watch(Ended(error=DeviceError("cpu: broken")), works[0])
    dispatch._watch(Ended(do(works[1])), works[1])
    dispatch._stop()
    assert [row.index for row in report.rows if row.status == "ok"] == [1]
    assert (client.stopped, client.cancelled) == ([dispatch._work.run], [[]])
