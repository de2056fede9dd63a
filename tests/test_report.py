"""The record of a run: complete, in plan order, and readable by machines."""

import base64
import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvcli.batch.plan import Job, Plan, Problem
from cvcli.batch.report import SCHEMA_VERSION, Report, dry_run
from cvcli.batch.report_file import check_report_path, dump_json
from cvcli.errors import UsageError

ODD = os.fsdecode(b"in/\xff\xfe.png")


def job(index: int, name: str | None = None) -> Job:
    name = name or f"in/{index}.png"
    return Job(index, Path(name), Path("out", Path(name).name), "PNG")


def mixed_plan() -> Plan:
    problem = Problem(Path("in/1.png"), Path("out/1.png"), "output exists", "use --overwrite", 1)
    return Plan((job(0), job(3, ODD)), (job(2),), (problem,), Path("out"))


def done(report: Report, index: int, bytes_in: int = 2_000_000, bytes_out: int = 500) -> None:
    report.opened(index, width=40, height=20, bytes_in=bytes_in)
    report.finish(index, width=20, height=10, bytes_out=bytes_out)


def filled() -> Report:
    report = Report(
        mixed_plan(),
        command="cvcli flip --axis -1 in out",
        version="1.0",
        device="cuda:0",
        device_stages=["flip"],
    )
    for stage, seconds in {"write": 0.5, "flip": 0.25, "upload": 0.25, "read": 1.0}.items():
        report.add_busy(stage, seconds, 1_000_000_000, index=0)
    done(report, 0)
    report.fail(3, f"{ODD}: truncated", "use --fail-on none")
    report.close()
    return report


def test_rows_follow_the_plan_and_start_from_what_it_settled():
    report = Report(mixed_plan())
    assert [row.index for row in report.rows] == [0, 1, 2, 3]
    assert [row.status for row in report.rows] == ["planned", "failed", "skipped", "planned"]
    assert (report.rows[1].error, report.rows[1].tip) == (
        "out/1.png: output exists",
        "use --overwrite",
    )
    assert (report.images, report.failed, report.skipped) == (0, 1, 1)


def test_totals_and_rates():
    report = filled()
    assert (report.images, report.failed, report.skipped) == (1, 2, 1)
    assert [row.index for row in report.failures] == [1, 3]
    assert report.images_per_s == pytest.approx(1 / report.wall_s)
    assert report.mb_per_s == pytest.approx(2 / report.wall_s)
    assert report.wall_s == report.wall_s > 0


def test_clock_runs_until_closed():
    report = Report(mixed_plan())
    first = report.wall_s
    assert report.wall_s > first
    report.close()
    stopped = report.wall_s
    report.close()
    assert report.wall_s == stopped > first


def test_stages_come_in_pipeline_order_with_shares_and_rates():
    stages = filled().stages()
    assert [stage.name for stage in stages] == [
        *("read", "decode", "upload", "flip", "encode", "write")
    ]
    assert {stage.name: stage.share for stage in stages if stage.busy_s} == {
        "read": 0.5,
        "upload": 0.125,
        "flip": 0.125,
        "write": 0.25,
    }
    assert [stage.gb_per_s for stage in stages] == [1.0, None, 4.0, 4.0, None, 2.0]


def test_labels_of_launches_keep_chain_order_and_others_follow():
    report = Report(mixed_plan(), device_stages=["resize", "flip + invert"])
    for stage in ("download", "blur", "flip + invert", "resize", "upload"):
        report.add_busy(stage, 0.1)
    assert [stage.name for stage in report.stages()] == [
        *("read", "decode", "upload", "resize", "flip + invert", "blur", "download"),
        *("encode", "write"),
    ]


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=4))
def test_shares_add_up_to_one(seconds):
    report = Report(mixed_plan())
    for stage, value in zip(("read", "decode", "encode", "write"), seconds, strict=True):
        report.add_busy(stage, value)
    total = sum(stage.share for stage in report.stages())
    assert total == pytest.approx(1.0) if sum(seconds) else total == 0


def test_times_of_an_image_add_up_in_milliseconds():
    report = Report(mixed_plan())
    report.add_busy("read", 0.25, index=0)
    report.add_busy("read", 0.25, index=0)
    report.add_busy("read", 0.5)
    assert report.rows[0].ms == {"read": 500.0}
    assert report.stages()[0].busy_s == 1.0


def test_notes_and_device_of_one_image():
    report = Report(mixed_plan(), device="cuda:0")
    report.note(0, "out of GPU memory")
    report.note(0, "out of GPU memory")
    report.opened(0, width=4, height=2, bytes_in=9)
    report.finish(0, width=4, height=2, bytes_out=9, device="cpu")
    assert (report.rows[0].notes, report.rows[0].device) == (["out of GPU memory"], "cpu")


def test_an_image_ends_once():
    report = filled()
    with pytest.raises(ValueError, match="image 0 was already ok"):
        report.fail(0, "in/0.png: no")
    assert (report.images, report.failed) == (1, 2)


def test_outputs_that_were_not_written_are_not_told_here_or_elsewhere():
    names = tuple(Path(f"out/a-{number:03}.bmp") for number in range(4))
    there = tuple(Path("/far", name) for name in names)
    own, other = (
        Report(Plan((Job(0, Path("a.gif"), first, "BMP", tuple(more)),), (), (), Path("out")))
        for first, *more in (names, there)
    )
    other.opened(0, width=40, height=20, bytes_in=9)
    other.finish(0, width=40, height=20, bytes_out=9, outputs=2)
    assert other.rows[0].outputs == list(there[:2])
    own.absorb(other.rows, [])
    assert own.rows[0].outputs == list(names[:2])
    assert [one.to_json()["totals"]["outputs"] for one in (own, other)] == [2, 2]


def test_many_threads_lose_nothing():
    count = 2000
    report = Report(Plan(tuple(map(job, range(count))), (), (), Path("out")))

    def work(index: int) -> None:
        for stage in ("read", "decode", "flip", "encode", "write"):
            report.add_busy(stage, 0.5, 3, index=index)
        report.fail(index, "x: y") if index % 4 == 0 else done(report, index, bytes_in=7)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, reversed(range(count))))
    assert [row.index for row in report.rows] == list(range(count))
    assert {(stage.busy_s, stage.nbytes) for stage in report.stages()} == {(1000.0, 6000)}
    totals = report.to_json()["totals"]
    assert (totals["images"], totals["failed"], totals["planned"]) == (1500, 500, 0)
    assert (totals["bytes_in"], totals["bytes_out"]) == (1500 * 7, 1500 * 500)


def test_json_has_the_documented_schema(tmp_path):
    report = filled()
    path = tmp_path / "new" / "report.JSON"
    report.write(path)
    data = json.loads(path.read_bytes().decode("ascii"))
    assert data == report.to_json()
    assert list(data) == [
        *("schema_version", "command", "version", "device", "shard", "started", "wall_s"),
        *("totals", "notes", "stages", "images"),
    ]
    assert data["schema_version"] == SCHEMA_VERSION == 1
    assert data["command"] == "cvcli flip --axis -1 in out"
    assert datetime.fromisoformat(data["started"]).utcoffset() == timedelta(0)
    assert set(data["totals"]) == {
        *("images", "failed", "skipped", "planned", "outputs", "bytes_in", "bytes_out"),
        *("images_per_s", "mb_per_s"),
    }
    assert data["images"][0] == {
        "index": 0,
        "input": "in/0.png",
        "output": "out/0.png",
        "outputs": None,
        "status": "ok",
        "error": None,
        "tip": None,
        "width_in": 40,
        "height_in": 20,
        "width_out": 20,
        "height_out": 10,
        "bytes_in": 2_000_000,
        "bytes_out": 500,
        "device": "cuda:0",
        "host": None,
        "notes": [],
        "ms": {"write": 500.0, "flip": 250.0, "upload": 250.0, "read": 1000.0},
    }


def test_paths_that_are_not_utf8_survive_json():
    row = json.loads(dump_json(filled().to_json()))["images"][3]
    assert os.fsencode(row["input"]) == base64.b64decode(row["input_b64"]) == b"in/\xff\xfe.png"
    assert base64.b64decode(row["output_b64"]) == b"out/\xff\xfe.png"


def test_csv_has_a_row_an_image(tmp_path):
    report = filled()
    report.rows[0].notes.extend(["one", "写真, two"])
    path = tmp_path / "report.csv"
    report.write(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok", "failed", "skipped", "failed"]
    assert {row["schema_version"] for row in rows} == {"1"}
    assert (rows[0]["ms: flip"], rows[0]["ms: decode"]) == ("250.0", "")
    assert (rows[0]["notes"], rows[0]["width_out"]) == ("one; 写真, two", "20")
    assert (rows[0]["input_b64"], rows[3]["input"]) == ("", "in/\\udcff\\udcfe.png")
    assert base64.b64decode(rows[3]["input_b64"]) == b"in/\xff\xfe.png"


def test_a_report_replaces_the_last_one(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    Report(mixed_plan()).write(path)
    assert len(json.loads(path.read_text())["images"]) == 4
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name", ["report", "report.txt", ".json", "folder.json", "plain/a.json", "plain/x/a.csv"]
)
def test_report_path_is_checked_before_the_run(tmp_path, name):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "plain").touch()
    with pytest.raises(UsageError):
        check_report_path(tmp_path / name)
    check_report_path(tmp_path / "new" / "a.CSV")


def test_dry_run_is_the_plan_in_the_same_schema():
    plan = mixed_plan()
    data = dry_run(plan, command="cvcli flip in out --dry-run", version="1.0")
    assert list(data) == list(Report(plan).to_json())
    assert list(data["images"][0]) == list(filled().to_json()["images"][0])
    assert (data["started"], data["wall_s"]) == (None, 0.0)
    assert [row["status"] for row in data["images"]] == [
        *("planned", "failed", "skipped", "planned")
    ]
    assert data == dry_run(plan, command="cvcli flip in out --dry-run", version="1.0")


def test_an_empty_report_is_still_json():
    data = Report(Plan((), (), (), Path("out"))).to_json()
    assert json.loads(dump_json(data))["images"] == []


def test_planning_imports_no_terminal_or_array_library():
    code = (
        "import sys, cvcli.batch.plan, cvcli.batch.report, cvcli.batch.files\n"
        "print([m for m in ('rich', 'typer', 'numpy', 'PIL', 'cupy') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment
    )
    assert run.stdout == "[]\n"


def test_timings_of_each_image_can_be_left_out(tmp_path):
    report = Report(mixed_plan(), timings=False)
    report.add_busy("read", 0.5, 100, index=report.rows[0].index)
    assert report.rows[0].ms == {}
    assert [stage.busy_s for stage in report.stages() if stage.name == "read"] == [0.5]
