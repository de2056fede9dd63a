"""Images written without a loss: JPEG is moved without decoding it, others lose nothing."""

from __future__ import annotations

import cvcli.codecs as codecs
from cvcli.batch.album import Album, Care
from cvcli.batch.orient import oriented
from cvcli.batch.plan import Job
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.core.turn import Turn, turn_of
from cvcli.errors import ParameterError

_TIP = "leave out --lossless to have it decoded and encoded anew"
_EXACT = "--format png or tiff keeps every pixel"


def turn_for(chain: Chain, header: codecs.Header, format: str, care: Care) -> Turn | None:
    """Return how a JPEG file is to be moved; None for what is encoded without a loss.

    Raises `ParameterError`, which says why neither is possible.
    """
    if codecs.is_lossless(format):
        return None
    if (header.format, format) != ("JPEG", "JPEG"):
        raise ParameterError(f"{format} can't be encoded without loss", tip=_EXACT)
    if care.frame:
        raise ParameterError("only the first picture of a JPEG can be moved without loss", _TIP)
    turned = oriented(chain, header.orientation if care.auto_orient else 1)
    try:
        turn = turn_of(turned, header.spec)
    except ParameterError as error:
        raise ParameterError(
            f"{error}, so the JPEG can't be kept without loss", error.tip or f"{_EXACT}; or {_TIP}"
        ) from None
    if reason := codecs.turn_refusal(header, turn):
        raise ParameterError(reason, f"crop it to whole blocks in the same chain, or {_TIP}")
    return turn


def opened(
    job: Job,
    data: bytes,
    header: codecs.Header,
    care: Care,
    chain: Chain,
    fail_on: str = "error",
) -> Album:
    """Return the album of a file, with the turn it takes if it is moved without decoding it.

    CMYK stays CMYK where pixels are only moved.
    """
    turn, format = None, job.format or header.format
    if care.lossless:
        turn = turn_for(chain, header, format, care)
    if turn or (codecs.keeps_inks(header, format) and only_moves(chain, header.spec)):
        header = header if care.to_srgb else codecs.inked(header)
    album = Album.opened(job, data, header, care, fail_on)
    album.turn = turn
    return album


def only_moves(chain: Chain, spec: ImageSpec) -> bool:
    """Return whether a chain is nothing but flips, quarter turns and crops of an image."""
    try:
        turn_of(chain, spec)
    except ParameterError:
        return False
    return True


def moved(album: Album, turn: Turn, data: bytes) -> bytes:
    """Return an album's file, moved, with its metadata."""
    album.lose(*album.metadata.cut)
    return codecs.moved(data, turn, album.prepared(album.metadata, album.header, album.target))


def moved_nbytes(header: codecs.Header) -> int:
    """Return the most memory that moving takes: coefficients, and those of one component anew."""
    spec = codecs.inked(header).spec
    return 2 * (spec.nbytes + spec.height * spec.width)
