"""The CPU device's queues: who waits for one runs its tasks, and Ctrl-C ends the wait only."""

from __future__ import annotations

import threading

import pytest

from cvcli.devices.queues import Point, Queue
from cvcli.errors import DeviceError


class Ended:
    """A task that Ctrl-C ends halfway the first time."""

    def __init__(self):
        self.runs = 0

    def __call__(self):
        self.runs += 1
        if self.runs == 1:
            raise KeyboardInterrupt


@pytest.fixture
def queue(monkeypatch):
    """A queue whose own thread does nothing, so that all is left to those who wait."""
    monkeypatch.setattr(Queue, "_run", lambda self: None)
    return Queue("test")


def test_who_waits_runs_the_tasks_in_order(queue):
    ran = []
    for number in range(3):
        queue.put(lambda number=number: ran.append((number, threading.get_ident())))
    assert not queue.idle()
    queue.join()
    assert queue.idle() and ran == [(number, threading.get_ident()) for number in range(3)]


def test_who_waits_for_an_event_runs_no_task_after_it(queue):
    ran, point = [], Point(queue)
    queue.put(lambda: ran.append("before"))
    queue.put(point.complete)
    queue.put(lambda: ran.append("after"))
    point.reach()
    assert ran == ["before"] and not queue.idle()


def test_work_that_ctrl_c_ended_begins_anew(queue):
    task = Ended()
    queue.put(task)
    with pytest.raises(KeyboardInterrupt):
        queue.join()
    assert not queue.idle()
    queue.join()
    assert queue.idle() and task.runs == 2


def test_a_failed_task_is_told_of_once_and_ends_no_other(queue):
    ran = []
    queue.put(lambda: 1 // 0)
    queue.put(lambda: ran.append(1))
    with pytest.raises(DeviceError, match="division"):
        queue.join()
    queue.join()
    assert ran == [1]
