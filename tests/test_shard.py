"""``--shard I/N``: the jobs together do what one run does, and their reports become its report."""

import csv
import json
from pathlib import Path

import pytest
from conftest import noise
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from test_cli import contents

from cvcli.batch.plan import Job, Plan, Problem
from cvcli.batch.report import Report
from cvcli.batch.shard import Shard
from cvcli.cli.app import run_app
from cvcli.errors import UsageError

COUNT = 11


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for index in range(COUNT):
        pixels = noise((9, 7 + index, 3), "uint8", index)
        Image.fromarray(pixels).save(tmp_path / "in" / f"{index:02}.png")
    return tmp_path


def run(*words, code=0):
    assert run_app([*map(str, words)]) == code


def report_of(path):
    return json.loads(path.read_text())


@given(st.integers(0, 60), st.integers(1, 12), st.randoms(use_true_random=False))
def test_shares_are_all_of_a_plan_once_and_even(files, count, random):
    kinds = [random.randrange(3) for _ in range(files)]
    jobs = [Job(i, Path(f"in/{i}"), Path(f"out/{i}"), None) for i in range(files)]
    parts = [[job for job, kind in zip(jobs, kinds, strict=True) if kind == k] for k in range(3)]
    bad = tuple(Problem(job.input, None, "no such file", index=job.index) for job in parts[2])
    plan = Plan(tuple(parts[0]), tuple(parts[1]), bad, "out")
    shares = [Shard(n, count).share(plan) for n in range(1, count + 1)]
    for name in ("jobs", "skipped", "problems"):
        found = [one for _, share in shares for one in getattr(share, name)]
        assert sorted(found, key=lambda one: one.index) == list(getattr(plan, name))
    sizes = [len(share) for _, share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert {(shard.files, shard.plan) for shard, _ in shares} == {(files, shares[0][0].plan)}


@pytest.mark.parametrize(
    "text", ("0/3", "4/3", "1", "1/0", "-1/2", "1/2/3", "a/b", "", "\N{ARABIC-INDIC DIGIT ONE}/2")
)
def test_what_is_no_share_is_refused(here, text, capfd):
    run("flip", "--axis", "0", "in", "out", "--shard", text, code=2)
    assert "cvcli: --shard: must be I/N with 1 <= I <= N" in capfd.readouterr().err
    with pytest.raises(UsageError):
        Shard.parse(text)


def test_the_jobs_together_give_what_one_run_gives(here):
    (here / "in" / "05.png").write_bytes(b"broken")
    flip = ("flip", "--axis", "-1", "in")
    name = ("--name", "{index:03}-{stem}-{width}.{ext}", "-q")
    run(*flip, "whole", *name, "--report", "whole.json", code=1)
    codes = [
        run_app([*flip, "parts", *name, "--shard", f"{i}/4", "--report", "r.json"])
        for i in range(1, 5)
    ]
    assert sorted(codes) == [0, 0, 0, 1]
    assert contents(here / "parts") == contents(here / "whole")
    reports = {path.name for path in here.glob("*.json")}
    assert reports == {"whole.json", *(f"r-{i}-of-4.json" for i in range(1, 5))}
    run("report", "merge", *here.glob("r-*.json"), "merged.json", "-q", code=1)
    one, merged = report_of(here / "whole.json"), report_of(here / "merged.json")
    assert merged["shard"] is None and len(merged["images"]) == COUNT
    for own, other in zip(one["images"], merged["images"], strict=True):
        assert own["host"] is None and bool(other["host"]) == (own["status"] == "ok")
        for key in ("index", "input", "status", "error", "bytes_out", "width_in", "width_out"):
            assert own[key] == other[key]
        assert own["output"] == (other["output"] and other["output"].replace("parts", "whole"))
    for key in ("images", "failed", "skipped", "planned", "bytes_in", "bytes_out"):
        assert one["totals"][key] == merged["totals"][key]
    parts = [report_of(here / f"r-{i}-of-4.json") for i in range(1, 5)]
    assert merged["totals"]["images"] == sum(part["totals"]["images"] for part in parts) == 10
    assert max(part["wall_s"] for part in parts) <= merged["wall_s"] + 0.002
    for stage in merged["stages"]:
        each = [own for part in parts for own in part["stages"] if own["name"] == stage["name"]]
        assert stage["busy_s"] == pytest.approx(sum(own["busy_s"] for own in each))
        assert stage["nbytes"] == sum(own["nbytes"] for own in each)


def test_reports_merge_to_a_table_and_a_page(here):
    for i in (1, 2):
        run("invert", "in", "out", "-q", "--shard", f"{i}/2", "--report", "r.json")
    run("report", "merge", "r-2-of-2.json", "r-1-of-2.json", "all.csv", "-q")
    run("report", "merge", "r-1-of-2.json", "r-2-of-2.json", "all.html", "-q")
    with (here / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["index"] for row in rows] == [str(i) for i in range(COUNT)]
    assert (here / "all.html").read_text().startswith("<!doctype html>")


def test_a_share_that_has_no_report_is_told(here, capfd):
    for i in (1, 3):
        run("invert", "in", "out", "-q", "--shard", f"{i}/3", "--report", "r.json")
    run("report", "merge", "r-1-of-3.json", "r-3-of-3.json", "all.json", "-q", code=1)
    assert "there is no report of share 2 of 3" in capfd.readouterr().err
    assert report_of(here / "all.json")["totals"]["images"] == 7


def test_what_can_not_be_merged_is_refused(here, capfd):
    run("invert", "in", "out", "-q", "--shard", "1/2", "--report", "r.json")
    run("invert", "in", "other", "-q", "--report", "whole.json")
    (here / "in" / "07.png").unlink()
    run("invert", "in", "out-2", "-q", "--shard", "2/2", "--report", "r.json")
    (here / "noise.json").write_text("[1, 2]")
    texts = {
        ("r-1-of-2.json", "r-2-of-2.json"): "r-2-of-2.json: is of another plan than r-1-of-2.json",
        ("r-1-of-2.json", "r-1-of-2.json"): "is of share 1/2, and so is r-1-of-2.json",
        ("whole.json",): "whole.json: is no report of a share",
        ("noise.json",): "noise.json: is no JSON report of cvcli",
        ("in/01.png",): "in/01.png: is no JSON report of cvcli",
        ("none.json",): "none.json: no such file",
    }
    for sources, text in texts.items():
        run("report", "merge", *sources, "all.json", code=2)
        assert text in capfd.readouterr().err
    run("report", "merge", "r-1-of-2.json", "r-1-of-2.json", code=2)
    assert "would overwrite one that it is made of" in capfd.readouterr().err
    assert not (here / "all.json").exists()


def test_collisions_and_reports_over_others_files_are_refused_in_every_job(here, capfd):
    (here / "more").mkdir()
    (here / "more" / "00.png").write_bytes((here / "in" / "00.png").read_bytes())
    for i in (1, 2):
        run("invert", "in", "more", "out", "--shard", f"{i}/2", code=2)
        assert "two inputs would write it" in capfd.readouterr().err
    assert not (here / "out").exists()


def test_a_share_stays_the_same_whatever_is_done_already(here):
    flip = ("flip", "--axis", "0", "in", "out", "-q", "--skip-existing")
    for i in (2, 1, 2):
        run(*flip, "--shard", f"{i}/2", "--report", "r.json")
    rows = report_of(here / "r-2-of-2.json")["images"]
    assert [row["index"] for row in rows] == list(range(1, COUNT, 2))
    assert {row["status"] for row in rows} == {"skipped"}


def test_a_share_with_nothing_in_it_is_well(here):
    run("invert", "in", "out", "-q", "--shard", f"{COUNT + 1}/{COUNT + 1}", "--report", "r.json")
    assert report_of(here / f"r-{COUNT + 1}-of-{COUNT + 1}.json")["images"] == []
    assert not (here / "out").exists()


def test_a_chain_that_suits_none_of_a_share_suits_others(here, capfd):
    """Alone this share would be refused as a whole; as part of the run its image fails."""
    Image.fromarray(noise((4, 4, 3), "uint8")).save(here / "in" / "00.png")
    crop = ("crop", "--width", "7", "--height", "7", "in", "out")
    run(*crop, "--shard", f"1/{COUNT}", code=1)
    assert "in/00.png: crop:" in capfd.readouterr().err
    crop = ("crop", "--width", "70", "--height", "7", "in", "out")
    run(*crop, "--shard", f"1/{COUNT}", code=2)


def test_stdin_can_not_be_shared(here, capfd):
    run("invert", "-", "out", "--shard", "1/2", code=2)
    assert "--shard: jobs can't share what comes through stdin" in capfd.readouterr().err


def test_a_dry_run_shows_the_share(here, capfd):
    run("invert", "in", "out", "--dry-run", "--shard", "3/4")
    shown = json.loads(capfd.readouterr().out)
    assert [row["index"] for row in shown["images"]] == [2, 6, 10]
    assert (shown["shard"]["number"], shown["shard"]["files"]) == (3, COUNT)


def test_what_is_done_elsewhere_counts_once():
    """A row that is known to be done stays as it is."""
    plan = Plan((Job(0, "a", "b", None), Job(1, "c", "d", None)), (), (), "out")
    report, other = Report(plan), Report(plan, host="far")
    report.fail(0, "a: no")
    for index in (0, 1):
        other.opened(index, width=1, height=1, bytes_in=5)
        other.finish(index, width=1, height=1, bytes_out=3)
    report.absorb(other.rows, [("read", 1.5, 10), ("blur", 0.5, 0)])
    assert [(row.status, row.host) for row in report.rows] == [("failed", None), ("ok", "far")]
    assert (report.images, report.failed, report.left) == (1, 1, 0)
    assert report.to_json()["totals"]["bytes_in"] == 5
    assert {s.name: s.busy_s for s in report.stages()} == {
        "read": 1.5, "decode": 0.0, "blur": 0.5, "encode": 0.0, "write": 0.0
    }  # fmt: skip
