"""One file on its way through a run: its pictures, and what is said beside them.

Most files hold one picture. The frames of an animation and the pages of a document are run as
images of their own; the file is written when the last of them is back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import cvcli.codecs as codecs
from cvcli.batch.files import identity_of
from cvcli.batch.orient import oriented
from cvcli.batch.plan import Job
from cvcli.batch.report import SHRUNK
from cvcli.batch.shrink import shrunk
from cvcli.batch.suits import refuse_made
from cvcli.codecs import Colour, Frame, Header, Metadata, Strip, gpu, parse_colour
from cvcli.core.chain import Chain
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec
from cvcli.core.turn import Turn
from cvcli.errors import ImageError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.codecs import Parts

    Pixels = NDArray[np.generic]

__all__ = ["Album", "Care", "Picture", "parse_colour"]

_LENIENT = ("none", "truncated")
STRICT_TIP = "leave out --strict to accept that"


@dataclass(frozen=True, slots=True)
class Care:
    """What is to be done with what a file holds beside plain pixels.

    ``frame`` picks one of several pictures, from 0; ``strict`` makes every loss an error;
    ``lossless`` allows no encoder that rounds; ``shrink`` has what a chain reduces first decoded
    at a fraction of its size.
    """

    strip: Strip = "none"
    background: Colour = codecs.WHITE
    auto_orient: bool = True
    to_srgb: bool = False
    frame: int | None = None
    strict: bool = False
    lossless: bool = False
    shrink: bool = False


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
    fail_on: str = "error"
    notes: list[str] = field(default_factory=list)
    done: dict[int, tuple[Picture, Pixels | memoryview]] = field(default_factory=dict)
    nbytes: int = 0
    failed: bool = False
    turn: Turn | None = None
    """How the file is moved instead of being decoded, if it is."""
    _upto: int | None = None

    @classmethod
    def opened(
        cls, job: Job, data: bytes, header: Header, care: Care, fail_on: str = "error"
    ) -> Album:
        """The album of a file; ImageError when it lacks the frame that is asked for.

        ``fail_on`` says which broken files are taken as far as they go, see `tolerates`.
        """
        format = job.format or header.format
        album = cls(job, header, format, care, codecs.metadata(data, header), 1, fail_on)
        count, frame = header.frames, care.frame
        if frame is not None and frame >= count:
            have = "1 picture" if count == 1 else f"{count} pictures"
            raise ImageError(f"there is no frame {frame}: the file has {have}, counted from 0")
        if frame is None:
            album._expect(count)
        else:
            album._upto = frame + 1
        if job.by_suffix and format != header.format:
            album._misnamed()
        return album

    def _misnamed(self) -> None:
        """Note that the suffix, by which the format was chosen, is not that of the content.

        ImageError where the file itself would become another kind of file.
        """
        held, format, job = self.header.format, self.format, self.job
        own = identity_of(str(job.input))
        if own is not None and own == identity_of(str(job.output)):
            raise ImageError(
                f"holds {held}, but its suffix stands for {format}",
                tip="rename it to have it replaced, or name an OUTPUT",
            )
        self.lose(f"holds {held}, but its suffix stands for {format}")

    def _expect(self, count: int) -> None:
        """Settle how many of the file's pictures are wanted, by the outputs there are for them."""
        planned, format = len(self.job.outputs), self.header.format
        if planned > 1:
            if count != planned:
                raise ImageError(f"was changed meanwhile: it held {planned} pictures, now {count}")
            self.expected = count
        elif codecs.holds_all(format, self.format):
            self.expected = count
        elif count > 1 and format in codecs.SERIES:
            # The plan went by the suffix, which says that there is no second picture.
            raise ImageError(
                f"is a {format} of {count} pictures by another suffix, and {self.format} holds one",
                tip=f"give it the suffix of {format}, or take one of them with --frame N",
            )
        elif count > 1:
            self.lose(f"only the first of {count} frames is kept")

    def tolerates(self, error: ImageError) -> bool:
        """Whether a file with this error is taken as far as it goes."""
        short = str(error).startswith("truncated")
        return self.fail_on == "none" or (self.fail_on == "truncated" and not short)

    @property
    def lenient_tip(self) -> str | None:
        """What there is to do about a broken file, if anything."""
        several = bool(self.care.frame) or not codecs.salvageable(self.header)
        return None if several else "--fail-on none keeps what there is of it"

    def _keep_whole(self, data: bytes, limit: int) -> None:
        """Settle for the pictures in front of the first broken one, if such files are taken.

        If that is the first, it is taken for the only one.
        """
        most = self.expected
        if self.fail_on not in _LENIENT or self.header.frames == 1 or self.care.frame:
            return
        if self.header.format not in codecs.SERIES:
            return
        count, error = codecs.whole(data, self.header, most, limit)
        if error is None or not self.tolerates(error):
            return
        self.expected = self._upto = max(1, count)
        if count:
            kept = "picture in front was" if count == 1 else f"{count} pictures in front were"
            self.notes.append(f"{error}; the {kept} kept")
        else:
            self.header = replace(self.header, frames=1)

    def lose(self, *reasons: str) -> None:
        """Note losses; ImageError where none is accepted."""
        if reasons and self.care.strict:
            raise ImageError(reasons[0], tip=STRICT_TIP)
        self.notes += [reason for reason in reasons if reason not in self.notes]

    def pictures(self, data: bytes, chain: Chain, limit: int) -> Iterator[Picture]:
        """The wanted pictures, each to be read at once; at most ``limit`` pixels in all.

        None of a file that is moved without decoding it.
        """
        pixels = 0
        if self.turn is not None:
            return
        self._keep_whole(data, limit)
        for number, frame in self._wanted(data):
            spec = frame.header.spec
            pixels += spec.height * spec.width
            if pixels > limit:
                text = f"its {self.expected} pictures are more than the limit of {limit} pixels"
                raise ImageError(text, tip="raise the limit with --max-pixels")
            turn = frame.header.orientation if self.care.auto_orient else 1
            plan = self._planned(chain, turn, spec, number)
            own, read = frame.header, frame.read
            if self.care.shrink:
                own, plan = shrunk(chain, own, turn, plan)
            if own.shrink > 1:
                self.notes.append(f"{SHRUNK}{own.shrink}")
                read = partial(codecs.decode, data, own)
            stored = plan.target
            if not codecs.has_inks(own):
                stored, losses = codecs.fit(plan.target, self.format)
                self.lose(*losses)
            known = self.metadata if frame.metadata is None else frame.metadata
            self.lose(*known.cut)
            yield Picture(number, own, frame.duration, read, plan, stored, known)

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
        if self.expected == self.header.frames == 1 and self.care.frame is None:
            yield 0, Frame(self.header, lambda out: codecs.decode(data, self.header, out))
            return
        start = self.care.frame or 0
        found = codecs.frames(data, self.header, self._upto)
        count = 0
        try:
            for count, frame in enumerate(islice(found, start, start + self.expected), 1):
                yield count - 1, frame
        except ImageError as error:
            raise ImageError(str(error), error.tip or self.lenient_tip) from error
        if count < self.expected:
            raise ImageError(f"truncated {self.header.format} data", self.lenient_tip)

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
    def written(self) -> Job:
        """The job with as many outputs as there are pictures for them."""
        job = self.job
        return replace(job, more=job.more[: self.expected - 1]) if job.more else job

    @property
    def target(self) -> ImageSpec:
        """What the first picture has become."""
        if self.turn is not None:
            return self.turn.result(self.header.spec)
        return self.done[0][0].plan.target

    @property
    def out_nbytes(self) -> int:
        """Bytes of all pixels after the chain, as far as they are still to be encoded."""
        done = (pixels for _, pixels in self.done.values())
        return sum(0 if isinstance(pixels, memoryview) else pixels.nbytes for pixels in done)

    def encoded(self, quality: int | None) -> list[Parts]:
        """The files of the job's outputs, of a quality or as the source was coded, in parts.

        One of all pictures, or one of each. The parts of the last are to be used before the
        calling thread encodes another.
        """
        whole = [self.done.pop(number) for number in range(self.expected)]
        if self.care.lossless:
            quality = codecs.LOSSLESS_QUALITY
        if len(whole) == 1:
            return [self._single(*whole[0], quality)]
        if self.job.more:
            return [(b"".join(self._single(*item, quality)),) for item in whole]
        file = codecs.encode_all(
            [self._converted(*item) for item in whole],
            self.format,
            quality=quality,
            sources=[picture.header for picture, _ in whole],
            each=[self._prepared(picture) for picture, _ in whole],
            durations=[picture.duration for picture, _ in whole],
        )
        return [(file,)]

    def _single(self, picture: Picture, pixels: Pixels | memoryview, quality: int | None) -> Parts:
        known = self._prepared(picture)
        if isinstance(pixels, memoryview):
            return gpu.with_metadata(pixels, known)
        return codecs.encode_parts(
            self._converted(picture, pixels),
            self.format,
            quality=quality,
            source=picture.header,
            metadata=known,
            planar=picture.stored.planar,
        )

    def _converted(self, picture: Picture, pixels: Pixels | memoryview) -> Pixels:
        assert not isinstance(pixels, memoryview)
        return codecs.converted(pixels, picture.stored, self.care.background)

    def _prepared(self, picture: Picture) -> Metadata:
        return self.prepared(picture.metadata, picture.header, picture.stored)

    def prepared(self, found: Metadata, header: Header, stored: ImageSpec) -> Metadata:
        """What the file says beside pixels of ``stored`` that came with a header."""
        care = self.care
        known = codecs.prepared(
            found, header, stored, self.format, strip=care.strip, upright=care.auto_orient
        )
        self.lose(*known.lost)
        return known
