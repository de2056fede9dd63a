"""As many workers as there are cores, and more where those wait for files."""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import files_in, save

from cvcli.batch import crew as crew_module
from cvcli.batch.crew import Crew, Demand
from cvcli.batch.options import Ends, Options
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import run
from cvcli.batch.sinks import FileSink
from cvcli.batch.sources import Files
from cvcli.devices.cpu import cpu_threads
from cvcli.ops import parse_chain


class Clocks:
    """A crew of two on two cores whose clocks are moved by hand; its threads wait to the end.

    In 0.1 s each worker does so many ``images``, but all together no more than ``most``.
    """

    def __init__(self, steered: bool = True, images: float = 1, most: float = 1000) -> None:
        self.now = self.ran = self.done = 0.0
        self.images, self.most = images, most
        self.over = threading.Event()
        self.crew = Crew(
            self.over.wait, 2, 2, steered=steered, clock=lambda: self.now,
            processor=lambda: self.ran,
        )  # fmt: skip
        self.crew.start()

    def look(self, share: float, waiting: int, left: int | None = None) -> int:
        """Let 0.1 s pass with a share of both cores busy, and so many workers waiting."""
        self.now, self.ran = self.now + 0.1, self.ran + 0.2 * share
        self.done += min(self.images * self.crew.count, self.most)
        self.crew.waiting = set(range(waiting))
        self.crew.look(100_000 - int(self.done) if left is None else left)
        while self.crew.leaves():
            pass
        return self.crew.count

    def end(self) -> None:
        self.over.set()
        self.crew.join()


@pytest.fixture
def clocks():
    made = []

    def make(**how):
        made.append(Clocks(**how))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_workers_are_added_while_they_wait_and_the_processor_is_idle(clocks):
    crew = clocks()
    counts = [crew.look(0.1, 16) for _ in range(30)]
    assert counts[:5] == [2] * 5 and counts[5] == 4 and counts == sorted(counts)
    assert counts[-1] == 16
    names = [thread.name for thread in threading.enumerate()]
    assert sum(name.startswith("cvcli-worker") for name in names) >= 16


@pytest.mark.parametrize("seen", [(0.95, 2), (0.1, 0), (0.85, 2)])
def test_none_is_added_for_a_busy_processor_or_where_none_waits(clocks, seen):
    crew = clocks()
    assert {crew.look(*seen) for _ in range(30)} == {2}


def test_those_that_make_nothing_faster_leave_and_are_tried_ever_more_seldom(clocks):
    crew = clocks(most=2)
    counts = [crew.look(0.4, 16) for _ in range(1000)]
    grown = [at for at, pair in enumerate(pairwise(counts)) if pair == (2, 4)]
    assert max(counts) == 4 and counts[-1] == 2
    gaps = [later - at for at, later in pairwise(grown)]
    assert 4 <= len(grown) <= 7 and all(b > 1.5 * a for a, b in pairwise(gaps))
    assert counts.count(4) < 60


def test_short_waits_are_not_worth_a_worker(clocks):
    crew = clocks(images=30)
    assert {crew.look(0.1, 2) for _ in range(50)} == {2}


def test_slow_files_are_counted_before_anything_is_tried(clocks):
    crew = clocks(images=0.02)
    counts = [crew.look(0.01, 16) for _ in range(110)]
    assert counts[98] == 2 and counts[-1] == 4
    for _ in range(900):
        crew.look(0.01, 16)
    assert crew.crew.count == 16


def test_a_moment_is_no_proof_and_none_is_added_for_nothing_to_do(clocks):
    crew = clocks()
    # What ran for long is told at once when it stops.
    assert {crew.look(share, 2) for _ in range(9) for share in (0, 0, 0, 4.5)} == {2}
    idle, fixed = clocks(), clocks(steered=False)
    assert [idle.look(0.1, 2, left=left) for left in range(8, -1, -1)] == [2] * 5 + [4] * 4
    assert [idle.look(0.1, 2, left=0) for _ in range(20)] == [4] * 20
    assert {fixed.look(0.1, 2) for _ in range(9)} == {2}


def test_the_added_ones_leave_when_the_processor_is_busy(clocks):
    crew = clocks()
    while crew.look(0.1, 16) < 16:
        pass
    assert [crew.look(1.0, 0) for _ in range(60)][-1] == 2


def test_demand_is_what_threads_ran_and_wanted_to():
    demand = Demand()
    begin, ran = demand(), time.process_time()
    time.sleep(0.3)
    slept = demand()
    assert slept - begin < 0.25

    def spin():
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    spin()
    thread.join()
    # A thread may end unseen, and of one that runs just now the system may not know the last bit.
    assert demand() - slept > 0.15 and demand() >= slept
    assert time.process_time() - ran >= 0.39


def test_a_run_goes_on_with_the_threads_that_the_system_gives(clocks, monkeypatch):
    crew = clocks()

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert {crew.look(0.1, 2) for _ in range(9)} == {2}


LATENCY_S = 0.1


class Far(Files):
    """Files that take a while to come, and how many were waited for at once."""

    def __init__(self) -> None:
        super().__init__()
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def read(self, job):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(LATENCY_S)
        with self.lock:
            self.now -= 1
        return super().read(job)


def test_a_slow_store_is_asked_for_many_files_at_once(tmp_path, monkeypatch):
    # Whatever else this machine does just now.
    monkeypatch.setattr(crew_module, "Demand", lambda: time.process_time)
    count = 120
    for number in range(count):
        save(tmp_path / f"in/{number}.png", noise((4, 4, 3), "uint8", seed=number))
    out, far = tmp_path / "out", Far()
    report = Report(plan := make_plan([tmp_path / "in"], out))
    cores = cpu_threads()
    begin = time.perf_counter()
    run(plan, parse_chain("invert"), Options(device="cpu"), report, ends=Ends(far, FileSink()))
    taken = time.perf_counter() - begin
    assert report.images == len(files_in(out)) == count
    if cores <= 4:
        # So long the workers that there are at first would only wait.
        assert far.most > cores and taken < 0.9 * count * LATENCY_S / cores
    pixels = np.asarray(Image.open(out / "7.png"))
    assert (pixels == 255 - noise((4, 4, 3), "uint8", seed=7)).all()


def test_a_number_that_is_given_stays(tmp_path):
    for number in range(20):
        save(tmp_path / f"in/{number}.png", noise((4, 4, 3), "uint8", seed=number))
    far, plan = Far(), make_plan([tmp_path / "in"], tmp_path / "out")
    options = Options(device="cpu", jobs=1)
    run(plan, parse_chain("invert"), options, Report(plan), ends=Ends(far, FileSink()))
    assert far.most == 1
