"""What an image is before its pixels exist: size, channels and dtype."""

from dataclasses import dataclass

ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}
MAX_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """Shape ``(height, width, channels)`` in pixels and one of the dtypes in `ITEMSIZE`.

    Samples of a pixel lie side by side; in a ``planar`` image each channel is a plane of its own.
    """

    height: int
    width: int
    channels: int
    dtype: str
    planar: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """The lengths of the axes of `layout`."""
        if self.planar:
            return self.channels, self.height, self.width
        return self.height, self.width, self.channels

    @property
    def layout(self) -> str:
        """``HWC``, or ``CHW`` of a planar image."""
        return "CHW" if self.planar else "HWC"

    @property
    def pixel_nbytes(self) -> int:
        return self.channels * ITEMSIZE[self.dtype]

    @property
    def row_nbytes(self) -> int:
        """Bytes of a packed row, of one plane if the image is planar."""
        return self.width * (ITEMSIZE[self.dtype] if self.planar else self.pixel_nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed image, rows without padding."""
        return self.height * self.width * self.pixel_nbytes

    @property
    def top(self) -> float:
        """The value of white: 255, 65535, or 1.0 for float32."""
        return 1.0 if self.dtype == "float32" else float((1 << 8 * ITEMSIZE[self.dtype]) - 1)

    def __str__(self) -> str:
        planes = " planar" if self.planar else ""
        return f"{self.width}x{self.height}x{self.channels} {self.dtype}{planes}"
