"""What kinds of images a plan's inputs are, by their headers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from cvcli.batch.check import header_of
from cvcli.batch.orient import oriented
from cvcli.batch.plan import Job, Plan
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.errors import CvcliError

Kind = tuple[Chain, ImageSpec]


def kinds_of(
    plan: Plan, chain: Chain, threads: int, max_pixels: int, *, auto_orient: bool
) -> list[tuple[Kind, int]]:
    """Return the kinds of image and how many there are, most first; unreadable ones left out.

    A kind is the chain with the turn that an image's orientation asks for, and the image's spec.
    """

    def kind_of(job: Job) -> Kind | None:
        try:
            header = header_of(job.input, max_pixels)
        except CvcliError:
            return None
        return oriented(chain, header.orientation if auto_orient else 1), header.spec

    with ThreadPoolExecutor(threads) as pool:
        found = [kind for kind in pool.map(kind_of, plan.jobs) if kind is not None]
    return Counter(found).most_common()
