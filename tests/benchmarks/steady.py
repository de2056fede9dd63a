"""One run of a chain, in this process: ``steady.py CHAIN SOURCE OUT CODEC FORMAT [DEVICE]``.

Prints when it started to give images and how fast they came from then on, as JSON. The rate is
that of the middle 80 %, so that neither the start nor the end of a short run counts. A run that
takes too long shows where each of its threads is, and ends.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from pathlib import Path
from typing import Any

from cvcli.batch.options import Options
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import run
from cvcli.ops import parse_chain

LIMIT_S = 40


def main(chain: str, source: str, out: str, codec: Any, form: str, device: str = "cuda") -> None:
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    plan = make_plan([Path(source)], Path(out), format=form or None)
    report = Report(plan, timeline=True)
    begin = time.perf_counter()
    run(plan, parse_chain(chain), Options(device=device, codec=codec), report)
    wall = time.perf_counter() - begin
    assert report.timeline is not None
    ends = report.timeline.finished()
    few = len(ends) // 10
    rate = (len(ends) - 2 * few - 1) / (ends[-few - 1] - ends[few])
    notes = sorted({note for row in report.rows for note in row.notes} | {*report.notes})
    found = {
        "images": report.images,
        "failed": report.failed,
        "steady": rate,
        "wall_s": wall,
        "first_s": ends[0],
        "busy_s": {stage.name: stage.busy_s for stage in report.stages()},
        "notes": notes,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
