"""Tables of 16 bits in the shared memory of GPUs that have room for them."""

import pytest
from conftest import CHANNELS
from test_kernels import launch_of

from cvcli.devices import geometry, nvrtc
from cvcli.devices.base import Kernel


@pytest.mark.parametrize("pattern", ("map_rows", "map_forward", "map_mirrored"))
@pytest.mark.parametrize("channels", CHANNELS)
def test_a_table_of_16_bits_goes_where_there_is_room(pattern, channels):
    kernel = Kernel(pattern, "uint16", channels, ("table",), channels % 2 == 0)
    assert geometry.with_room(kernel, 99 << 10) is kernel
    roomy = geometry.with_room(kernel, 163 << 10)
    assert (roomy.room, roomy.threads) == (1 << 17, 512)
    code = nvrtc.compile_source(nvrtc.expand(nvrtc.source_of(roomy)), 80)
    assert code.startswith(b"\x7fELF")
    launch = launch_of(kernel, 1000, 5000, 700)
    x, y, z = geometry.lasting_grid(launch, 132)
    across = geometry.segment_pixels(2 * channels)
    assert (x - 1) * across < 700 <= x * across and 1 <= x * y * z <= 132
    assert geometry.lasting_grid(launch_of(kernel, 2, 3, 700), 132) == (x, 1, 2)


@pytest.mark.parametrize(
    "kernel",
    (
        Kernel("map_tiles", "uint16", 3, ("table",)),
        Kernel("map_rows", "uint8", 3, ("table",)),
        Kernel("map_rows", "uint16", 3),
        Kernel("map_rows", "float32", 3, ("invert",)),
        Kernel("pixels", "uint16", 3, ("table",), tile=(1, 1)),
    ),
)
def test_other_kernels_take_no_room(kernel):
    assert geometry.with_room(kernel, 1 << 20) is kernel
