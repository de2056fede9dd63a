"""``--cluster``: what many workers do is what one process does, also when they die."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from clusters import Cluster, Fatal
from conftest import CASES, noise
from hypothesis import given
from hypothesis import strategies as st
from test_cli import MODULE, contents, environment, files_in, load, save
from test_run import heed_interrupts

from cvcli.batch.cluster import run_on_cluster
from cvcli.batch.plan import Job, make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import Ends, Options
from cvcli.batch.sinks import FileSink, RepeatedSink
from cvcli.batch.sources import Files
from cvcli.batch.workers import host_of, pieces
from cvcli.cli.app import run_app
from cvcli.core.chain import Chain
from cvcli.errors import ImageError
from cvcli.ops import operator_named, parse_chain

COUNT = 40
# Far from done when its first images are.
LONG = ("run", " | ".join(["median-blur --size 31"] * 4))
FLIP = ("flip", "--axis", "-1")
HALF_TURN = Chain((operator_named("flip").step(axis=-1),))


@pytest.fixture(scope="module")
def cluster():
    own = Cluster(2)
    yield own.address
    own.close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for index in range(COUNT):
        save(tmp_path / "in" / f"{index:02}.png", noise((9, 7 + index, 3), "uint8", index))
    return tmp_path


def run(*words, code=0):
    assert run_app([*map(str, words)]) == code


def rows_of(path):
    return json.loads(path.read_text())["images"]


@contextlib.contextmanager
def running(*words):
    """The command as a process, which is ended in any case."""
    own = environment(PYTHONPATH=os.pathsep.join(sys.path))
    process = subprocess.Popen(
        [*MODULE, *map(str, words)],
        env=own,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("op, case", CASES)
def test_the_text_of_a_chain_is_the_chain(op, case):
    chain = Chain((op.step(**case), *HALF_TURN))
    assert parse_chain(str(chain)) == chain


@given(st.integers(0, 300), st.integers(0, 20), st.integers(1, 70))
def test_pieces_are_all_jobs_in_order(count, slots, most):
    found = pieces(range(count), slots, most)
    slots = max(1, slots)  # workers may have left since they were waited for
    assert [one for piece in found for one in piece] == list(range(count))
    assert all(1 <= len(piece) <= most for piece in found)
    assert count < slots * 8 or len(found) > slots * 4


def test_hosts_are_told_from_addresses():
    assert host_of("tcp://10.0.0.7:40001") == "10.0.0.7"
    assert host_of("tls://[::1]:40001") == "[::1]"


def test_workers_do_what_one_process_does(here, cluster):
    (here / "in" / "05.png").write_bytes(b"broken")
    name = ("--name", "{index:03}-{stem}.{ext}", "-q", "--threads", "1")
    run(*FLIP, "in", "one", *name, "--report", "one.json", code=1)
    more = ("--report", "many.json", "--trace", "trace.json")
    run(*FLIP, "in", "many", *name, "--cluster", cluster, *more, code=1)
    assert contents(here / "many") == contents(here / "one")
    for own, other in zip(rows_of(here / "one.json"), rows_of(here / "many.json"), strict=True):
        assert other["host"] and set(own["ms"]) == set(other["ms"])
        for key in ("index", "input", "status", "error", "bytes_in", "bytes_out", "width_out"):
            assert own[key] == other[key]
    report = json.loads((here / "many.json").read_text())
    assert (report["totals"]["images"], report["totals"]["failed"]) == (COUNT - 1, 1)
    assert report["device"] == "cpu"
    events = json.loads((here / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["args"]["index"] for event in spans} == set(range(COUNT))
    assert all(-1e5 <= event["ts"] <= 1e6 * report["wall_s"] + 1e5 for event in spans)


def test_what_is_there_is_skipped_checked_or_in_the_way(here, cluster):
    flip = (*FLIP, "in", "out", "-q", "--cluster", cluster)
    run(*FLIP, "in/00.png", "in/01.png", "out", "-q")
    before = (here / "out" / "01.png").stat().st_mtime_ns
    run(*flip, "--skip-existing")
    assert (here / "out" / "01.png").stat().st_mtime_ns == before
    run(*flip, "--check")
    run(*flip, code=1)
    run(*flip, "--overwrite")
    save(here / "out" / "07.png", noise((9, 14, 3), "uint8", 1))
    run(*flip, "--check", code=1)


def test_a_run_ends_at_so_many_failures(here, cluster):
    for index in range(0, COUNT, 2):
        (here / "in" / f"{index:02}.png").write_bytes(b"broken")
    flip = (*FLIP, "in", "out", "-q", "--cluster", cluster)
    run(*flip, "--fail-fast", "--report", "r.json", code=1)
    states = [row["status"] for row in rows_of(here / "r.json")]
    assert states.count("failed") >= 1 and states.count("planned") >= 1
    done = [f"{index:02}.png" for index in range(COUNT) if states[index] == "ok"]
    assert files_in(here / "out") == done


def test_errors_of_planning_come_before_anything_is_sent(here, capfd):
    nowhere = ("--cluster", "tcp://127.0.0.1:9")
    run("invert", "in", "in/00.png", "in", "--overwrite", *nowhere, code=2)
    assert "input would be overwritten" in capfd.readouterr().err
    run("crop", "--width", "999", "--height", "1", "in", "out", *nowhere, code=2)
    assert "crop: " in capfd.readouterr().err
    run("invert", "-", "out", *nowhere, code=2)
    run("invert", "--in-place", "in", *nowhere, code=2)
    assert "--in-place and --cluster" in capfd.readouterr().err
    for wrong in ("local", "local:0", "local:x"):
        run("invert", "in", "out", "--cluster", wrong, code=2)
    assert "must be local:N" in capfd.readouterr().err
    run("invert", "in", "out", "--cluster", "none.json", code=2)
    assert "--cluster: none.json: no such file" in capfd.readouterr().err
    assert not (here / "out").exists()


def test_what_workers_can_not_see_is_told(here, cluster, capfd):
    flip = (*FLIP, "-q", "--cluster", cluster)
    run(*flip, "in", "memory://out", code=2)
    assert "memory://out/00.png is in one process's memory" in capfd.readouterr().err
    plan = make_plan([here / "in"], here / "out")
    (here / "in" / "00.png").unlink()
    report = Report(plan)
    ends = Ends(Files(), FileSink())
    run_on_cluster(plan, HALF_TURN, Options(device="cpu"), report, lambda r: None, ends, cluster)
    (failed,) = report.failures
    assert failed.error.endswith("00.png: no such file") and "same files" in failed.tip


def test_a_gpu_must_be_offered(here, cluster, capfd):
    run("invert", "in", "out", "--device", "cuda", "--cluster", cluster, code=2)
    assert "--cluster: no worker offers a GPU" in capfd.readouterr().err
    assert not (here / "out").exists()


def test_a_worker_that_is_killed_loses_nothing(here):
    """Half-way one of two workers is killed: its work is done again, and every output is right."""
    for index in range(COUNT):
        save(here / "big" / f"{index:02}.png", noise((300, 400, 3), "uint8", index))
    run(*LONG, "big", "expected", "-q", "--device", "cpu")
    words = (*LONG, "big", "out", "-q", "--cluster", "local:2", "--report", "r.json")
    with running(*words) as process:
        wait_for(lambda: len(files_in(here / "out")) >= 5)
        workers = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if child.num_threads() > 3
        ]
        workers[0].send_signal(signal.SIGKILL)
        killed_at = len(files_in(here / "out"))
        assert process.wait(timeout=100) == 0, process.stderr.read()
    assert killed_at < COUNT and len(workers) == 2
    assert files_in(here / "out") == [f"{index:02}.png" for index in range(COUNT)]
    for index in range(COUNT):
        name = f"{index:02}.png"
        assert np.array_equal(load(here / "out" / name), load(here / "expected" / name))
    assert {row["status"] for row in rows_of(here / "r.json")} == {"ok"}


def test_an_image_that_kills_its_workers_fails_alone(here, cluster):
    (here / "in" / "03.png").rename(here / "in" / "fatal.png")
    plan = make_plan([here / "in"], here / "out")
    report = Report(plan)
    ends = Ends(Fatal(), FileSink())
    options = Options(device="cpu", jobs=1)
    run_on_cluster(plan, HALF_TURN, options, report, lambda report: None, ends, cluster)
    (failed,) = report.failures
    assert failed.input.name == "fatal.png" and "2 workers died" in failed.error
    assert report.images == COUNT - 1 == len(files_in(here / "out"))


def test_ctrl_c_ends_a_run_and_its_workers(here):
    for index in range(COUNT):
        save(here / "big" / f"{index:02}.png", noise((300, 400, 3), "uint8", index))
    words = (*LONG, "big", "out", "-q", "--cluster", "local:2", "--report", "r.json")
    with running(*words) as process:
        wait_for(lambda: len(files_in(here / "out")) >= 3)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in text and b"interrupted" in text
    assert psutil.wait_procs(children, timeout=20)[1] == []
    done = [row for row in rows_of(here / "r.json") if row["status"] == "ok"]
    assert 0 < len(done) < COUNT
    assert files_in(here / "out") == [Path(row["output"]).name for row in done]


def test_a_scheduler_that_goes_away_ends_the_run(here):
    for index in range(COUNT):
        save(here / "big" / f"{index:02}.png", noise((300, 400, 3), "uint8", index))
    own = Cluster(1)
    words = (*LONG, "big", "out", "-q", "--cluster", own.address, "--report", "r.json")
    with running(*words) as process:
        wait_for(lambda: len(files_in(here / "out")) >= 3)
        own.kill()
        _, text = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"cvcli: --cluster: the scheduler can't be reached any more" in text
    assert b"Traceback" not in text and text.count(b"\n") == 2
    states = [row["status"] for row in rows_of(here / "r.json")]
    assert states.count("planned") > 0
    for name in files_in(here / "out"):
        assert name.startswith(".") or load(here / "out" / name).shape == (300, 400, 3)


def test_a_gpu_is_asked_for_on_the_worker(here):
    words = ("invert", "in", "out", "-q", "--device", "cuda", "--cluster", "local:1")
    with running(*words) as process:
        _, text = process.communicate(timeout=60)
    assert process.returncode == 2 and text.startswith(b"cvcli: cuda:0: the")
    assert not (here / "out").exists()


def test_the_codecs_of_a_gpu_are_asked_for_on_the_worker(here, cluster, capfd):
    words = ("--device", "cpu", "--codec", "gpu", "--cluster", cluster)
    run("invert", "in", "out", "-q", *words, code=2)
    text = capfd.readouterr().err
    assert "--codec gpu: there is no GPU to use" in text and "leave out --codec" in text
    assert not (here / "out").exists()


@pytest.mark.gpu
def test_workers_with_a_gpu_give_the_same_bytes(here):
    run(*FLIP, "in", "one", "-q", "--device", "cpu")
    with running(*FLIP, "in", "many", "-q", "--device", "cuda", "--cluster", "local:2") as process:
        process.wait(timeout=200)
    assert process.returncode == 0
    assert contents(here / "many") == contents(here / "one")


def test_work_that_is_repeated_finds_its_own_outputs(tmp_path):
    sink = pickle.loads(pickle.dumps(FileSink().repeatable()))
    assert isinstance(sink, RepeatedSink)
    job = Job(0, tmp_path / "a.png", tmp_path / "out" / "a.png", None)
    sink.put(job, [(b"who", b"le")], None)
    sink.put(job, [(b"who", b"le")], None)
    with pytest.raises(ImageError, match="output exists"):
        sink.put(job, [(b"other",)], None)
    assert job.output.read_bytes() == b"whole"
    FileSink(overwrite=True).repeatable().put(job, [(b"other",)], None)
    assert job.output.read_bytes() == b"other"
