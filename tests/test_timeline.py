"""The timeline of a run, as a Chrome trace and as a page to look at."""

from __future__ import annotations

import base64
import io
import json
import re
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import within
from conftest import noise
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps
from test_cli import FLIP, cvcli, folder_of, save

from cvcli.batch import charts
from cvcli.batch.thumbs import SIDE, thumbnail
from cvcli.batch.timeline import Span, Timeline
from cvcli.cli.app import run_app


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png", "c.png")
    return tmp_path


def run(*words, code=0):
    assert run_app([str(word) for word in words]) == code


def test_a_timeline_keeps_what_it_was_told():
    zero = time.perf_counter()
    timeline = Timeline(zero)
    timeline.add("read", 0.25, 3, zero + 1.0, "one")
    timeline.add("flip", 0.5, None, zero + 2.0, "two")
    timeline.add("read", 9.0, 4)
    timeline.finish()
    first, second, third = timeline.spans()
    assert (first.stage, first.lane, first.index) == ("read", "one", 3)
    assert (first.start, first.end) == (pytest.approx(0.75), pytest.approx(1.0))
    assert (second.stage, second.index) == ("flip", None)
    assert (third.lane, third.start) == ("MainThread", 0.0)  # never before the run
    assert len(timeline) == 3 and 0 < timeline.finished()[0] < 5


def test_a_trace_has_each_stage_of_each_image(here):
    Path("in/bad.png").write_bytes(b"no image")
    run(*FLIP, "-q", "-j", 2, "--trace", "t.json", "--report", "r.json", "in", "out", code=1)
    trace = json.loads(Path("t.json").read_bytes().decode("ascii"))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    done = {(event["args"]["image"], event["name"]) for event in spans}
    stages = ("read", "decode", "flip", "encode", "write")
    assert done >= {(f"in/{name}.png", stage) for name in "abc" for stage in stages}
    assert ("in/bad.png", "read") in done and ("in/bad.png", "write") not in done
    report = json.loads(Path("r.json").read_text())
    busy = {stage["name"]: stage["busy_s"] for stage in report["stages"]}
    for stage in stages:
        total = sum(event["dur"] for event in spans if event["name"] == stage) / 1e6
        assert total == pytest.approx(busy[stage], abs=1e-4)
    lanes = {
        e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"
    }
    assert set(lanes.values()) <= {"worker-0", "worker-1"}
    for lane in lanes:  # a thread does one thing at a time
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == lane)
        assert all(a[1] <= b[0] + 20 for a, b in pairwise(own))
    for image in ("in/a.png", "in/b.png"):  # and an image passes the stages in turn
        starts = {e["name"]: e["ts"] for e in spans if e["args"]["image"] == image}
        assert sorted(stages, key=lambda stage: starts[stage]) == list(stages)


@pytest.mark.gpu
def test_a_gpu_has_lanes_of_its_own(here):
    run(*FLIP, "-q", "--device", "cuda", "--trace", "t.json", "--report", "r.html", "in", "out")
    events = json.loads(Path("t.json").read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    by_stage = {e["name"]: lanes[e["tid"]] for e in events if e["ph"] == "X"}
    for stage in ("upload", "flip", "download"):
        assert by_stage[stage] == f"cuda:0 {stage}"
    assert by_stage["decode"].startswith("worker-")
    for name in "abc":  # an image passes the stages in turn
        own = {e["name"]: e["ts"] for e in events if e["args"].get("image") == f"in/{name}.png"}
        order = ["decode", "upload", "flip", "download", "encode"]
        assert sorted(order, key=lambda stage: own[stage]) == order
    assert "cuda:0 download" in Path("r.html").read_text()


def test_reports_and_traces_replace_each_other_but_nothing_else(here, capfd):
    for _ in range(2):
        run(*FLIP, "-q", "--overwrite", "--report", "r.html", "--trace", "t.json", "in", "out")
    Path("mine.html").write_text("<!doctype html><p>mine")
    run(*FLIP, "--report", "mine.html", "in", "out2", code=2)
    run(*FLIP, "--trace", "t.html", "in", "out2", code=2)
    run(*FLIP, "--trace", "r.json", "--report", "./r.json", "in", "out2", code=2)
    assert Path("mine.html").read_text().endswith("mine") and not Path("out2").exists()


class Page(HTMLParser):
    """The tags, texts and addresses of a page; closed tags must match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.sources = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.sources += [values[key] for key in ("src", "href") if key in values]
        assert not any(name.startswith("on") for name in values)
        if tag not in ("br", "img", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_stands_alone_and_shows_what_happened(here):
    evil = "<script>alert(1)</script>&.png"
    save(here / "in" / evil.replace("/", "_"), noise((300, 200, 3), "uint8"))
    Path("in/<b>bad.png").write_bytes(Path("in/a.png").read_bytes()[:700])
    done = cvcli(*FLIP, "-q", "--report", "r.html", "in", "out")
    assert done.returncode == 1
    text = Path("r.html").read_text()
    page = Page(text)
    shown = " ".join(page.texts)
    for words in ("Where the time went", "Timeline", "Overlap", "Throughput", "Slowest", "Failed"):
        assert words in shown
    assert "in/<b>bad.png: truncated PNG data" in shown and "<script" not in text
    assert not re.search(r"https?://|url\(|@import", text)
    assert len(page.sources) == 8  # four images, before and after
    for source in page.sources:
        kind, data = source.split(",")
        assert kind == "data:image/jpeg;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            assert max(image.size) <= SIDE
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == 3
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_the_page_after_changes_in_place_shows_no_before(here):
    run(*FLIP, "-q", "--in-place", "--report", "r.html", "in")
    assert len(Page(Path("r.html").read_text()).sources) == 3


def test_the_page_shows_no_stranger_of_the_same_name(here):
    data = within.cvcli(*FLIP, "-q", "in", "-").stdout
    save(here / "a.png", noise((9, 9, 3), "uint8"))
    within.cvcli(*FLIP, "-q", "--report", "r.html", "-", "-", data=data)
    assert Page(Path("r.html").read_text()).sources == []
    within.cvcli(*FLIP, "-q", "--report", "r.html", "-", "out", data=data)
    assert len(Page(Path("r.html").read_text()).sources) == 3


def test_the_page_of_nothing_done(here):
    Path("in2").mkdir(), Path("in2/bad.png").write_bytes(b"no image")
    run(*FLIP, "-q", "--report", "r.html", "in2", "out", code=1)
    assert "Failed" in Path("r.html").read_text()


@pytest.mark.parametrize("kind", ["uint8", "uint16", "alpha", "float", "gray"])
def test_thumbnails_show_the_image_upright(tmp_path, kind):
    # Four quarters of one colour each, so that scaling can't hide a turn.
    small = np.array([[[250, 10, 10], [10, 250, 10]], [[10, 10, 250], [240, 240, 240]]], np.uint8)
    large = small.repeat(150, 0).repeat(200, 1)
    path = tmp_path / "a.tif"
    exif = Image.Exif()
    exif[0x112] = 6
    if kind == "uint8":
        Image.fromarray(large).save(path, exif=exif)
    elif kind == "alpha":
        rgba = np.concatenate([large, np.full_like(large[:, :, :1], 128)], 2)
        Image.fromarray(rgba).save(path, exif=exif)
    elif kind == "gray":
        Image.fromarray(large[:, :, 0]).save(path, exif=exif)
    elif kind == "uint16":
        Image.fromarray(large[:, :, 0].astype(np.uint16) << 8).save(path, exif=exif)
    else:
        Image.fromarray(large[:, :, 0].astype(np.float32) / 255).save(path, exif=exif)
    address = thumbnail(path)
    with Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))) as image:
        got = np.asarray(image.convert("RGB")).astype(int)
        assert ("png" in address) == (kind == "alpha")
    wanted = np.asarray(ImageOps.exif_transpose(_with(small, exif)).convert("RGB")).astype(int)
    if kind not in ("uint8", "alpha"):
        wanted = wanted[:, :, :1]
    height, width = got.shape[:2]
    for row in (0, 1):
        for column in (0, 1):
            middle = got[height * (2 * row + 1) // 4, width * (2 * column + 1) // 4]
            assert abs(middle - wanted[row, column]).max() < 25


def _with(pixels, exif):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=exif)
    return Image.open(file)


def test_what_can_not_be_shown_is_none(tmp_path):
    (tmp_path / "a.png").write_bytes(b"nothing")
    assert thumbnail(tmp_path / "a.png") is None and thumbnail(tmp_path / "gone.png") is None


spans = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=20
)


@given(spans, st.sampled_from([1, 7, 120]))
def test_no_busy_time_is_lost_in_the_bins(given_spans, bins):
    made = [Span(stage, "one", None, start, seconds) for stage, start, seconds in given_spans]
    shares = charts._shares(made, 10.0, bins)
    for name in "abc":
        total = sum(one.get(name, 0.0) for one in shares.values())
        assert total == pytest.approx(sum(s.seconds for s in made if s.stage == name), abs=1e-9)


def test_a_long_run_gives_a_page_of_bounded_size():
    zero = time.perf_counter()
    timeline = Timeline(zero)
    for number in range(40_000):
        for stage in ("read", "decode", "encode"):
            lane = f"worker-{number % 16}"
            timeline.add(stage, 0.001, number, zero + number * 0.001 + 0.001, lane)
        timeline.finish()
    colour = charts.colours(["read", "decode", "encode"])
    drawn = charts.lanes_chart(timeline, 41.0, colour)
    assert len(drawn) < 4_000_000 and drawn.index("worker-9<") < drawn.index("worker-10<")
    assert len(charts.overlap_chart(timeline, 41.0, colour)) < 50_000
