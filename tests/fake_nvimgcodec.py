"""A stand-in for nvImageCodec on a machine without a GPU, and GPUs made of the CPU device.

It decodes and encodes by imagecodecs, in host memory, which on such a GPU is device memory. What
the real library is known to do is done here too: rows lie apart, an undecodable file gives None
and no exception, the encoder knows no metadata, and writes 4:2:0 of quality 75 unless told.
"""

from __future__ import annotations

import importlib.machinery
import sys
from enum import Enum
from types import ModuleType, SimpleNamespace

import imagecodecs
import numpy as np

from cvcli.devices import find
from cvcli.devices.cpu import CpuDevice
from cvcli.devices.numbers import Numbers

NAME = "nvidia.nvimgcodec"
PADDING = 64


class BackendKind(Enum):
    CPU_ONLY, GPU_ONLY, HYBRID_CPU_GPU, HW_GPU_ONLY = range(4)


class Pixels:
    """An image of the library: rows are longer than their pixels."""

    def __init__(self, pixels):
        height, width, channels = pixels.shape
        self.room = np.full((height, width * channels + PADDING), 170, np.uint8)
        self.room[:, :-PADDING] = pixels.reshape(height, -1)
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": pixels.shape,
            "typestr": "|u1",
            "data": (self.room.ctypes.data, False),
            "strides": (self.room.strides[0], channels, 1),
            "stream": 1,
        }

    def __del__(self):
        # Whoever still reads it would see that.
        self.room[...] = 85


class CodeStream(bytearray):
    """Room for a file; it can't be written anew while someone looks at the last one."""

    def __init__(self, size, pin_memory):
        super().__init__()
        self.size, self.pinned = size, pin_memory


class Fake:
    """The library as a module, with what the tests want to know and to spoil."""

    def __init__(self):
        self.gpus = []
        self.decoded, self.encoded = [], []
        """How many images each call had."""
        self.spoil_decoding = self.spoil_encoding = lambda count: None
        """Called first; what it raises is raised, and what it returns is returned."""
        self.broken = False
        self.refused = set()
        names = ModuleType(NAME)
        names.__spec__ = importlib.machinery.ModuleSpec(NAME, None)
        names.BackendKind = BackendKind
        names.Backend = lambda kind: kind
        names.ColorSpec = SimpleNamespace(UNCHANGED="unchanged")
        names.QualityType = SimpleNamespace(QUALITY="quality")
        names.ChromaSubsampling = SimpleNamespace(
            **{f"CSS_{name}": name for name in ("444", "422", "420", "440", "411", "GRAY")}
        )
        names.DecodeParams = names.EncodeParams = names.JpegEncodeParams = SimpleNamespace
        names.Decoder, names.Encoder = self.decoder, self.encoder
        names.CodeStream = self.code_stream
        self.rooms = self.decoders = self.encoders = 0
        self.module = names

    def decoder(self, device_id, max_num_cpu_threads, backends, options):
        assert ":fancy_upsampling=1" in options
        if self.broken or backends[0] in self.refused:
            raise RuntimeError("Internal error - Could not create decoder. Code: 7")
        self.decoders += 1
        return SimpleNamespace(decode=self.decode, device=device_id, kinds=backends)

    def encoder(self, device_id, max_num_cpu_threads, backends):
        self.encoders += 1
        return SimpleNamespace(encode=self.encode, device=device_id)

    def code_stream(self, size, pin_memory):
        self.rooms += 1
        return CodeStream(size, pin_memory)

    def decode(self, files, params, cuda_stream):
        assert not params.apply_exif_orientation and params.allow_any_depth
        assert cuda_stream
        self.decoded.append(len(files))
        found = self.spoil_decoding(len(files))
        return found if found is not None else [self._decoded(file) for file in files]

    @staticmethod
    def _decoded(file):
        try:
            pixels = imagecodecs.jpeg8_decode(file)
        except Exception:
            return None
        return Pixels(pixels if pixels.ndim == 3 else pixels[:, :, None])

    def encode(self, images, codec, code_stream_s, params, cuda_stream):
        assert codec == ".jpg" and len(code_stream_s) == len(images)
        # Pixels may still be on their way on that stream.
        next(g for g in self.gpus if cuda_stream in g._streams).synchronize_stream(cuda_stream)
        self.encoded.append(len(images))
        found = self.spoil_encoding(len(images))
        if found is not None:
            return found
        for image, room in zip(images, code_stream_s, strict=True):
            room[:] = self._encoded(image, params)
        return code_stream_s

    @staticmethod
    def _encoded(image, params):
        view = SimpleNamespace(__array_interface__=image.__cuda_array_interface__)
        return imagecodecs.jpeg8_encode(
            np.array(np.asarray(view)),
            level=params.quality_value,
            subsampling=params.chroma_subsampling,
            optimize=params.jpeg_encode_params.optimized_huffman,
        )


class FakeGpu(CpuDevice):
    """The CPU device by the name of a GPU: its streams and kernels, without a bus between."""

    kind = "cuda"

    def __init__(self, index):
        super().__init__()
        self.name, self.index = f"cuda:{index}", index
        self._handles = Numbers(1_000_000 * index)
        self.launches = 0

    def launch(self, launch, stream):
        self.launches += 1
        super().launch(launch, stream)


def install(monkeypatch, count=1):
    """Put the library and ``count`` GPUs in place; return the library and the GPUs."""
    from cvcli.codecs.gpu import nvimage
    from cvcli.core import engine, stream

    fake = Fake()
    fake.gpus = gpus = [FakeGpu(index) for index in range(count)]
    parent = ModuleType("nvidia")
    parent.__path__ = []
    monkeypatch.setitem(sys.modules, "nvidia", parent)
    monkeypatch.setitem(sys.modules, NAME, fake.module)
    monkeypatch.setattr(nvimage, "_library", lambda: fake.module)
    monkeypatch.setattr(find, "gpu_count", lambda: count)
    monkeypatch.setattr(find, "cupy_installed", lambda: True)
    for known in (find._DEVICES, engine._ENGINES, stream._DEFAULTS):
        for name in [name for name in known if name != "cpu"]:
            monkeypatch.delitem(known, name)
    for gpu in gpus:
        monkeypatch.setitem(find._DEVICES, gpu.name, gpu)
        # Deleted again in the end, whoever made it meanwhile.
        monkeypatch.setitem(engine._ENGINES, gpu.name, engine.Engine(gpu))
        monkeypatch.setitem(stream._DEFAULTS, gpu.name, engine._ENGINES[gpu.name].default)
    return fake, gpus
