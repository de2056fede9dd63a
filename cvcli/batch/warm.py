"""Imported by the process that workers are forked from: what each would otherwise load anew."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

import cvcli.batch.workers  # noqa: F401
import cvcli.codecs as codecs
from cvcli.errors import CvcliError
from cvcli.ops import operators

operators()
# Codecs load their libraries when they are first used; none of them leaves a thread behind.
for _format in ("PNG", "JPEG"):
    with suppress(CvcliError):
        _data = codecs.encode(np.zeros((1, 1, 3), np.uint8), _format)
        codecs.decode(_data, codecs.probe(_data, None), np.empty((1, 1, 3), np.uint8))
