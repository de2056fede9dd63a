"""One file on its way through a run: its pictures, and what is said beside them.

Most files hold one picture. The frames of an animation and the pages of a document are run as
images of their own; the file is written when the last of them is back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import cvcli.codecs as codecs
from cvcli.batch.orient import oriented
from cvcli.batch.plan import Job
from cvcli.batch.suits import refuse_made
from cvcli.codecs import Colour, Frame, Header, Metadata, Strip, gpu, parse_colour
from cvcli.core.chain import Chain
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.codecs import Parts

    Pixels = NDArray[np.generic]

__all__ = ["Album", "Care", "Picture", "parse_colour"]

STRICT_TIP = "leave out --strict to accept that"


@dataclass(frozen=True, slots=True)
class Care:
    """What is to be done with what a file holds beside plain pixels.

    ``frame`` picks one of several pictures, from 0; ``strict`` makes every loss an error.
    """

    strip: Strip = "none"
    background: Colour = codecs.WHITE
    auto_orient: bool = True
    to_srgb: bool = False
    frame: int | None = None
    strict: bool = False


@dataclass(slots=True)
class Picture:
    """One picture with the pass that it takes and what it becomes in the file.

    ``read`` holds the file's bytes, so it goes once it is done.
    """

    number: int
    header: Header
    duration: float
    read: Callable[[Pixels], None] | None
    plan: Plan
    stored: ImageSpec
    metadata: Metadata


@dataclass(slots=True)
class Album:
    """The pictures of one file; not guarded, so its owner must."""

    job: Job
    header: Header
    format: str
    care: Care
    metadata: Metadata
    expected: int
    notes: list[str] = field(default_factory=list)
    done: dict[int, tuple[Picture, Pixels | memoryview]] = field(default_factory=dict)
    nbytes: int = 0
    failed: bool = False

    @classmethod
    def opened(cls, job: Job, data: bytes, header: Header, care: Care) -> Album:
        """The album of a file; ImageError when it lacks the frame that is asked for."""
        format = job.format or header.format
        album = cls(job, header, format, care, codecs.metadata(data, header), 1)
        count, frame = header.frames, care.frame
        if frame is not None and frame >= count:
            have = "1 picture" if count == 1 else f"{count} pictures"
            raise ImageError(f"there is no frame {frame}: the file has {have}, counted from 0")
        if frame is None and count > 1:
            if codecs.holds_all(header, format):
                album.expected = count
            else:
                album.lose(f"only the first of {count} frames is kept")
        return album

    def lose(self, *reasons: str) -> None:
        """Note losses; ImageError where none is accepted."""
        if reasons and self.care.strict:
            raise ImageError(reasons[0], tip=STRICT_TIP)
        self.notes += [reason for reason in reasons if reason not in self.notes]

    def pictures(self, data: bytes, chain: Chain, limit: int) -> Iterator[Picture]:
        """The wanted pictures, each to be read at once; at most ``limit`` pixels in all."""
        pixels = 0
        for number, frame in self._wanted(data):
            spec = frame.header.spec
            pixels += spec.height * spec.width
            if pixels > limit:
                text = f"its {self.expected} pictures are more than the limit of {limit} pixels"
                raise ImageError(text, tip="raise the limit with --max-pixels")
            turn = frame.header.orientation if self.care.auto_orient else 1
            plan = self._planned(chain, turn, spec, number)
            stored, losses = codecs.fit(plan.target, self.format)
            self.lose(*losses)
            known = self.metadata if frame.metadata is None else frame.metadata
            self.lose(*known.cut)
            own = frame.header
            yield Picture(number, own, frame.duration, frame.read, plan, stored, known)

    def _planned(self, chain: Chain, turn: int, spec: ImageSpec, number: int) -> Plan:
        """The chain's plan for a picture; what it refuses in a later one is told with its place."""
        try:
            plan = oriented(chain, turn).plan(spec)
            refuse_made(plan, self.format)
        except ParameterError as error:
            place = f"frame {number}: " if number else ""
            raise ParameterError(f"{place}{error}", tip=error.tip) from None
        return plan

    def _wanted(self, data: bytes) -> Iterator[tuple[int, Frame]]:
        if self.expected == self.header.frames == 1:
            yield 0, Frame(self.header, lambda out: codecs.decode(data, self.header, out))
            return
        start = self.care.frame or 0
        found = islice(codecs.frames(data, self.header), start, start + self.expected)
        count = 0
        for count, frame in enumerate(found, 1):
            yield count - 1, frame
        if count < self.expected:
            raise ImageError(f"truncated {self.header.format} data")

    def read(self, picture: Picture, out: Pixels) -> None:
        """Decode a picture into ``out``, and to sRGB if that is asked for."""
        if picture.read is not None:
            picture.read(out)
        picture.read = None
        if self.care.to_srgb:
            picture.metadata = codecs.to_srgb(out, picture.metadata)

    def add(self, picture: Picture, pixels: Pixels | memoryview) -> bool:
        """Take a picture that has been run, or its file; return whether it was the last."""
        self.done[picture.number] = picture, pixels
        return len(self.done) == self.expected

    @property
    def target(self) -> ImageSpec:
        """What the first picture has become."""
        return self.done[0][0].plan.target

    @property
    def out_nbytes(self) -> int:
        """Bytes of all pixels after the chain, as far as they are still to be encoded."""
        done = (pixels for _, pixels in self.done.values())
        return sum(0 if isinstance(pixels, memoryview) else pixels.nbytes for pixels in done)

    def encoded(self, quality: int | None) -> Parts:
        """The file of all pictures, of a quality or as the source was coded, in parts.

        They are to be used before the calling thread encodes another.
        """
        whole = [self.done.pop(number) for number in range(self.expected)]
        each = [self._prepared(picture) for picture, _ in whole]
        images = []
        for picture, pixels in whole:
            if isinstance(pixels, memoryview):
                return gpu.with_metadata(pixels, each[0])
            images.append(self._converted(picture, pixels))
        if len(whole) == 1:
            source = whole[0][0].header
            return codecs.encode_parts(
                images[0],
                self.format,
                quality=quality,
                source=source,
                metadata=each[0],
                planar=whole[0][0].stored.planar,
            )
        file = codecs.encode_all(
            images,
            self.format,
            quality=quality,
            sources=[picture.header for picture, _ in whole],
            each=each,
            durations=[picture.duration for picture, _ in whole],
        )
        return (file,)

    def _converted(self, picture: Picture, pixels: Pixels) -> Pixels:
        return codecs.converted(pixels, picture.stored, self.care.background)

    def _prepared(self, picture: Picture) -> Metadata:
        care = self.care
        known = codecs.prepared(
            picture.metadata,
            picture.header,
            picture.stored,
            self.format,
            strip=care.strip,
            upright=care.auto_orient,
        )
        self.lose(*known.lost)
        return known
