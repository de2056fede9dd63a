"""What an image is before its pixels exist: size, channels and dtype."""

from dataclasses import dataclass

ITEMSIZE = {"uint8": 1, "uint16": 2, "float32": 4}
MAX_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """Shape ``(height, width, channels)`` in pixels and one of the dtypes in `ITEMSIZE`."""

    height: int
    width: int
    channels: int
    dtype: str

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def pixel_nbytes(self) -> int:
        return self.channels * ITEMSIZE[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of the packed image, rows without padding."""
        return self.height * self.width * self.pixel_nbytes

    @property
    def top(self) -> float:
        """The value of white: 255, 65535, or 1.0 for float32."""
        return 1.0 if self.dtype == "float32" else float((1 << 8 * ITEMSIZE[self.dtype]) - 1)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}x{self.channels} {self.dtype}"
