"""How little a run keeps of each of its images, and that what it keeps is the same."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvcli.batch.inputs import Found
from cvcli.batch.jobs import Job, Jobs, folders_of
from cvcli.batch.packed import Packed
from cvcli.batch.places import Place, Url
from cvcli.batch.plan import Plan, Problem, plan_files
from cvcli.batch.report import Report
from cvcli.batch.rows import Rows
from cvcli.batch.rules import Rules
from cvcli.batch.sinks import Sink
from cvcli.batch.state import State

ODD = os.fsdecode(b"in/\xff\xfe.png")


def records() -> Packed[tuple[int, str]]:
    return Packed(lambda item: item, lambda record: (record[0], record[1]))


@given(st.integers(0, 700), st.lists(st.integers(-800, 800), max_size=6))
def test_packed_items_are_those_of_a_list(count, bounds):
    items, packed = [(i, f"name-{i}\udcff") for i in range(count)], records()
    for item in items:
        packed.append(item)
    assert list(packed) == items and len(packed) == count
    for at in bounds:
        assert list(packed[at:]) == items[at:] and list(packed[:at:3]) == items[:at:3]
        if -count <= at < count:
            assert packed[at] == items[at]
        else:
            with pytest.raises(IndexError):
                packed[at]
    packed.renew()
    assert list(packed) == items
    packed.append((count, "next"))
    assert packed[-1] == (count, "next") and len(packed) == count + 1
    numbers = [at % count for at in bounds] if count else []
    assert packed.pick(numbers) == [items[at] for at in numbers]


PLACES: list[Place] = [Path("a.png"), Path(ODD), Url("s3://bucket/a//b.png"), Path("/x/y/写.png")]


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES)), max_size=300))
def test_jobs_are_those_that_were_given(pairs):
    given_jobs = tuple(
        Job(i, one, other, (None, "PNG")[i % 2], tuple(PLACES[: i % 3]))
        for i, (one, other) in enumerate(pairs)
    )
    jobs = Jobs(given_jobs)
    assert jobs == given_jobs and tuple(jobs) == given_jobs and jobs[1:] == given_jobs[1:]
    assert jobs != (*given_jobs, Job(0, Path(), Path(), None))
    folders = {os.fspath(output.parent) for job in given_jobs for output in job.outputs}
    assert folders_of(jobs) == folders_of(given_jobs) == sorted(folders)


def job(index: int) -> Job:
    return Job(index, Path(f"in/{index}.png"), Path(f"out/{index}.png"), "PNG")


@settings(max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(0, 600))
def test_rows_are_what_was_made_of_them_in_whatever_order(random, step, count):
    kinds = [random.randrange(8) for _ in range(count)]
    indexes = range(0, count * step, step)
    jobs = [job(i) for i, kind in zip(indexes, kinds, strict=True) if kind > 1]
    skipped = [job(i) for i, kind in zip(indexes, kinds, strict=True) if kind == 0]
    gone = [i for i, kind in zip(indexes, kinds, strict=True) if kind == 1]
    bad = [Problem(job(i).input, None, "gone", None, i) for i in gone]
    random.shuffle(bad)
    report = Report(Plan(Jobs(jobs), tuple(skipped), tuple(bad), Path("out")))
    todo = [one.index for one in jobs if random.random() < 0.8]
    random.shuffle(todo)
    for index in todo:
        if index % 2:
            report.begin(job(index))
        report.opened(index, width=index, height=2, bytes_in=3)
        report.finish(index, width=1, height=1, bytes_out=index)
    late = todo[:5]
    for index in late:
        # A clock may stop after another thread has written the image.
        report.add_busy("decode", 0.5, index=index)
        report.note(index, "late")
    assert [row.index for row in report.rows] == list(indexes)
    ok = {row.index: row for row in report.rows if row.status == "ok"}
    assert sorted(ok) == sorted(todo)
    assert all((row.width_in, row.bytes_out) == (i, i) for i, row in ok.items())
    assert {i for i, row in ok.items() if row.ms} == set(late)
    assert report.told() == [f"in/{i}.png: late" for i in sorted(late)]
    assert [row.index for row in report.failures] == sorted(one.index for one in bad)
    assert [row.status for row in report.rows].count("planned") == report.left
    settled = {row.index for row in report.rows.settled(0)}
    assert settled == {*todo, *(one.index for one in (*skipped, *bad))}
    assert all(report.rows[at] == row for at, row in enumerate(report.rows))


def test_a_row_that_is_begun_is_one_and_the_same_until_it_is_settled():
    rows = Rows(Plan(Jobs(map(job, range(1000))), (), (), Path("out")))
    row = rows.row(500)
    row.notes.append("seen")
    assert rows.row(500) is row and rows[500] is row
    rows.settle(row)
    for index in range(500):
        rows.settle(rows.row(index))
    assert rows[500] == row and rows[500] is not row
    assert rows.row(500) is rows.row(500) == row


def kept_of_a_run(count: int) -> int:
    """Return the bytes that are kept of a run: by the plan, the queue, and the report's rows."""
    files = (Found(f"in/photo-{i:06}.png", f"photo-{i:06}.png") for i in range(count))
    tracemalloc.start()
    try:
        plan = plan_files(list(files), Path("out"), Rules())
        report = Report(plan, timings=False)
        state = State(plan.jobs, 1, Sink(), lambda: 1, None, more=False)
        for seen, task in enumerate(iter(state.next, None)):
            assert isinstance(task, Job) and task.index == seen
            report.opened(seen, width=8, height=9, bytes_in=200 + seen % 40)
            report.finish(seen, width=9, height=8, bytes_out=300 + seen % 50)
            state.was_read()
            state.leave(None)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.images == count and report.rows[count // 2].bytes_out is not None
    return kept


def test_of_each_image_only_some_bytes_are_kept():
    # Twice, as a table of the interpreter's own may grow in one of them.
    few, many = (min(kept_of_a_run(count) for _ in range(2)) for count in (500, 2500))
    # Whole rows and jobs would be a thousand each.
    assert (many - few) / 2000 < 64


def test_a_plan_takes_little_room_while_it_is_made():
    files = [Found(f"in/{i:06}.png", f"{i:06}.png") for i in range(5000)]
    plan_files(files[:1], Path("out"), Rules())
    tracemalloc.start()
    try:
        plan = plan_files(files, Path("out"), Rules())
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(plan) == 5000 and kept < peak < 5000 * 250
