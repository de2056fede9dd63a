"""What kinds of images a plan's inputs are, by their headers, and what will become of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import cvcli.codecs as codecs
from cvcli.batch.album import Care
from cvcli.batch.check import header_of
from cvcli.batch.lossless import only_moves, turn_for
from cvcli.batch.orient import oriented
from cvcli.batch.plan import STDIO, Job, Plan
from cvcli.batch.shrink import shrunk_chain
from cvcli.batch.sources import Files
from cvcli.batch.suits import refuse_made
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.errors import CvcliError, ParameterError


@dataclass(frozen=True, slots=True)
class Kind:
    """Images of one ``spec`` with the same way through a run.

    Where a file is moved without being decoded, ``moved`` is what it becomes; where it will fail,
    ``refusal`` says why. Else ``chain`` has the turn in front that the orientation asks for, and
    takes images of ``decoded``, whose sides are smaller by ``factor``.
    """

    spec: ImageSpec
    chain: Chain
    decoded: ImageSpec
    factor: int = 1
    moved: ImageSpec | None = None
    refusal: str | None = None


def kinds_of(
    plan: Plan, chain: Chain, threads: int, max_pixels: int, care: Care, source: Files
) -> tuple[list[tuple[Kind, int]], int]:
    """Return the kinds of picture and how many there are, most first, and how many can't be read.

    Files of several pictures count as often as they will be run; one of them fails as a whole.
    """

    def look(job: Job) -> list[Kind] | None:
        try:
            kinds = [
                _kind(header, job.format or header.format, chain, care)
                for header in _headers(job, max_pixels, care, source)
            ]
        except CvcliError:
            return None
        return [kind for kind in kinds if kind.refusal is not None][:1] or kinds

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(look, plan.jobs))
    counts = Counter(kind for kinds in found if kinds is not None for kind in kinds)
    return counts.most_common(), found.count(None)


def _headers(job: Job, max_pixels: int, care: Care, source: Files) -> Iterator[codecs.Header]:
    """Yield the headers of the pictures that a file will give; pages are looked at one by one."""
    if job.input == STDIO:
        header = codecs.probe(source.read(job), max_pixels)
    else:
        header = header_of(job.input, max_pixels)
    if care.frame and care.frame < header.frames:
        found = codecs.frames(source.read(job), header, care.frame + 1)
        header = next((one.header for one in islice(found, care.frame, None)), header)
    all_of_it = len(job.outputs) > 1 or codecs.holds_all(header.format, job.format or header.format)
    if care.frame is not None or header.frames == 1 or not all_of_it:
        yield header
    elif header.format == "TIFF":
        pages = islice(codecs.frames(source.read(job), header), header.frames)
        yield from (page.header for page in pages)
    else:
        yield from [header] * header.frames


def _kind(header: codecs.Header, format: str, chain: Chain, care: Care) -> Kind:
    """Return what will become of a picture, which goes by the same rules as the run itself."""
    whole, turn = header.spec, header.orientation if care.auto_orient else 1
    stands = oriented(chain, turn)
    try:
        if care.frame and care.frame >= header.frames:
            raise ParameterError(f"there is no frame {care.frame}")
        refuse_made(stands.plan(whole), format)
        if care.lossless and (move := turn_for(chain, header, format, care)) is not None:
            return Kind(whole, chain, whole, moved=move.result(whole))
        if codecs.keeps_inks(header, format) and only_moves(chain, whole) and not care.to_srgb:
            whole = codecs.inked(header).spec
    except ParameterError as error:
        return Kind(whole, chain, whole, refusal=str(error))
    for factor in codecs.shrinks(header) if care.shrink else ():
        fast = shrunk_chain(chain, whole, factor, turn)
        if fast is not None:
            return Kind(whole, fast, codecs.shrunk(header, factor).spec, factor)
    return Kind(whole, stands, whole)
