"""What a process asks of the machine: quotas of control groups, numbers, and few collections."""

from __future__ import annotations

import gc
import threading

import pytest

from cvcli.batch.garbage import few_collections
from cvcli.devices import cgroup
from cvcli.devices.cpu import cpu_threads
from cvcli.devices.numbers import Numbers


def laid(tmp_path, own, files):
    """A tree of control files, and the list of groups that a process is in."""
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path, tmp_path / "own"


V1 = "4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/\n"


@pytest.mark.parametrize(
    ("own", "files", "processors"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/s/j\n", {"s/cpu.max": "300000 100000", "s/j/cpu.max": "max 100000"}, 3),
        ("0::/s/j\n", {"s/cpu.max": "300000 100000", "s/j/cpu.max": "50000 100000"}, 1),
        ("0::/not/here\n", {"cpu.max": "400000 100000"}, 4),
        (V1, {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        (V1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        (
            V1,
            {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "1", "cpu,cpuacct/a/b/cpu.cfs_period_us": "9"},
            1,
        ),
        ("odd", {"cpu.max": "what"}, None),
    ],
)
def test_processors_are_those_of_the_tightest_quota(tmp_path, own, files, processors):
    assert cgroup.processors(*laid(tmp_path, own, files)) == processors


@pytest.mark.parametrize(
    ("own", "files", "nbytes"),
    [
        ("0::/s\n", {"memory.max": "max", "s/memory.max": "1000"}, 1000),
        ("0::/s\n", {"memory.max": "max"}, None),
        (
            V1,
            {"memory/a/memory.limit_in_bytes": "5000", "memory/memory.limit_in_bytes": "9000"},
            5000,
        ),
    ],
)
def test_memory_is_that_of_the_tightest_limit(tmp_path, own, files, nbytes):
    assert cgroup.memory(*laid(tmp_path, own, files)) == nbytes


def test_workers_follow_the_quota(monkeypatch):
    monkeypatch.setattr(cgroup, "processors", lambda: 1)
    assert cpu_threads() == 1
    monkeypatch.setattr(cgroup, "processors", lambda: None)
    assert cpu_threads() >= 1


def test_numbers_are_given_once_whichever_thread_asks():
    numbers, given = Numbers(), [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda own=own: own.extend(numbers.take() for _ in range(5000)))
        for own in given
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for own in given for number in own) == list(range(1, 20001))


@pytest.mark.parametrize("enabled", (True, False))
def test_the_garbage_collector_is_left_as_it_was(enabled):
    before, was = gc.get_threshold(), gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with few_collections():
            assert gc.isenabled() and gc.get_threshold()[0] > before[0]
        assert gc.isenabled() is enabled and gc.get_threshold() == before
    finally:
        (gc.enable if was else gc.disable)()
