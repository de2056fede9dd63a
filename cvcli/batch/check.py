"""Find, before anything is written, the images that a chain does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import cvcli.codecs as codecs
from cvcli.batch.album import Care
from cvcli.batch.jobs import Jobs, texts_of
from cvcli.batch.lossless import turn_for
from cvcli.batch.orient import oriented
from cvcli.batch.outputs import Size
from cvcli.batch.places import Place, place
from cvcli.batch.plan import STDIO, Job, Plan
from cvcli.batch.report import Report
from cvcli.batch.storage import storage_of
from cvcli.batch.suits import fits_every_image, refuse_made
from cvcli.core.chain import Chain
from cvcli.errors import CvcliError, ParameterError

# Enough of a file for the headers of all common formats.
_HEAD_NBYTES = 1 << 16


def check_inputs(
    plan: Plan,
    chain: Chain,
    report: Report,
    threads: int,
    max_pixels: int,
    auto_orient: bool = True,
    frame: int | None = None,
    lossless: bool = False,
) -> Plan:
    """Return the plan without the images whose size or kind the chain or the output refuses.

    They are reported as failed. If it suits none of the images, the parameters are wrong, not the
    images: then the first refusal is raised. Headers are read only for a chain that may refuse.
    """
    if not lossless and fits_every_image(chain, {texts[3] for texts in texts_of(plan.jobs)}):
        return plan
    care = Care(auto_orient=auto_orient, frame=frame, lossless=lossless)

    def look(job: Job) -> CvcliError | None:
        return _verdict(job, chain, max_pixels, care)

    with ThreadPoolExecutor(threads) as pool:
        verdicts = list(pool.map(look, plan.jobs))
    refused = [
        (job, error)
        for job, error in zip(plan.jobs, verdicts, strict=True)
        if isinstance(error, ParameterError)
    ]
    whole = plan.whole or plan
    if refused and None not in verdicts and not whole.skipped:
        own = {job.index for job in plan.jobs}
        others = (job for job in whole.jobs if job.index not in own)
        if all(look(job) is not None for job in others):
            job, error = refused[0]
            raise ParameterError(f"{job.input}: {error}", error.tip)
    for job, error in refused:
        report.fail(job.index, f"{job.input}: {error}", error.tip)
    lost = {job.index for job, _ in refused}
    return replace(plan, jobs=Jobs(job for job in plan.jobs if job.index not in lost))


def sizes_of(
    paths: Sequence[str],
    counts: Sequence[int],
    chain: Chain,
    threads: int,
    max_pixels: int,
    auto_orient: bool = True,
    frame: int | None = None,
) -> list[list[Size] | str]:
    """Return width and height of as many results as each file is to give, or why it gives none.

    If the chain suits none of the images, the first refusal is raised.
    """

    def look(path: str, count: int) -> list[Size] | CvcliError:
        try:
            where = place(path)
            if count > 1:
                data, _ = storage_of(where).read(where, stamped=False)
                return _sizes(data, _header_in(data, max_pixels, frame), count, chain, auto_orient)
            return [_size(header_of(where, max_pixels, frame), chain, auto_orient)]
        except CvcliError as error:
            return error

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(look, paths, counts))
    if all(isinstance(one, CvcliError) for one in found):
        for path, first in zip(paths, found, strict=True):
            if isinstance(first, ParameterError):
                raise ParameterError(f"{place(path)}: {first}", first.tip)
    return [
        str(one).removeprefix(f"{place(path)}: ") if isinstance(one, CvcliError) else one
        for path, one in zip(paths, found, strict=True)
    ]


def measure_of(
    chain: Chain, max_pixels: int, auto_orient: bool = True, frame: int | None = None
) -> Callable[[bytes, int], list[Size] | str]:
    """Return what gives the sizes of so many results of an input's bytes, or why there are none."""

    def measure(data: bytes, count: int) -> list[Size] | str:
        try:
            return _sizes(data, _header_in(data, max_pixels, frame), count, chain, auto_orient)
        except CvcliError as error:
            return str(error)

    return measure


def _sizes(
    data: bytes, header: codecs.Header, count: int, chain: Chain, auto_orient: bool
) -> list[Size]:
    """The sizes of so many results; only pages differ."""
    if count == 1 or header.format != "TIFF":
        return [_size(header, chain, auto_orient)] * count
    pages = codecs.frames(data, header, count)
    return [_size(page.header, chain, auto_orient) for page in pages]


def _size(header: codecs.Header, chain: Chain, auto_orient: bool) -> Size:
    plan = oriented(chain, header.orientation if auto_orient else 1).plan(header.spec)
    return plan.target.width, plan.target.height


def _verdict(job: Job, chain: Chain, max_pixels: int, care: Care) -> CvcliError | None:
    """Return why an image can't be run, None if it can; unreadable ones are the run's to report."""
    if job.input == STDIO:
        return None
    try:
        header = header_of(job.input, max_pixels, care.frame)
        made = oriented(chain, header.orientation if care.auto_orient else 1).plan(header.spec)
        refuse_made(made, job.format or header.format)
        if care.lossless:
            turn_for(chain, header, job.format or header.format, care)
    except CvcliError as error:
        return error
    return None


def header_of(path: Place, max_pixels: int, frame: int | None = None) -> codecs.Header:
    """Return a file's header, from its first bytes if they will do; raise `CvcliError`.

    With a ``frame`` other than the first it is that of the picture of this number.
    """
    storage = storage_of(path)
    if frame:
        return _header_in(storage.read(path, stamped=False)[0], max_pixels, frame)
    try:
        return codecs.probe(storage.head(path, _HEAD_NBYTES), max_pixels)
    except (CvcliError, OSError):
        return codecs.probe(storage.read(path, stamped=False)[0], max_pixels)


def _header_in(data: bytes, max_pixels: int, frame: int | None) -> codecs.Header:
    """The header of the picture that is asked for, as pages differ; that it lacks is told later."""
    first = codecs.probe(data, max_pixels)
    if not frame or frame >= first.frames:
        return first
    return next(islice(codecs.frames(data, first, frame + 1), frame, None)).header
