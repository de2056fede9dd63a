"""Every error cvcli raises on purpose, and the exit codes of the command.

A message is one sentence of the form ``where: what must be so, got this``; ``tip`` holds the
one thing to do about it, where there is one.
"""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_INPUT = 66
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
EXIT_TERMINATED = 143


class CvcliError(Exception):
    """Base of all errors; ``exit_code`` is what the command ends with."""

    exit_code = EXIT_FAILED

    def __init__(self, message: str, tip: str | None = None) -> None:
        super().__init__(message)
        self.tip = tip


class UsageError(CvcliError):
    """The request is wrong before any file is read."""

    exit_code = EXIT_USAGE


class ParameterError(UsageError, ValueError):
    """A parameter of an operator is out of range or of the wrong kind."""


class TensorError(CvcliError, TypeError):
    """An operand has the wrong dtype, layout, shape or device."""

    exit_code = EXIT_USAGE


class CopyError(UsageError, TypeError):
    """What belongs to this process was to be copied, or sent to another one by pickling."""


class NoInputError(UsageError):
    """Nothing matched the inputs."""

    exit_code = EXIT_NO_INPUT


class ImageError(CvcliError):
    """One file can't be read, decoded, encoded or written."""


class DeviceError(CvcliError):
    """A device is missing, or refused a request."""

    exit_code = EXIT_USAGE


class LostClusterError(DeviceError):
    """A cluster went away in the middle of a run; what it has done stays."""

    exit_code = EXIT_FAILED


class OutOfMemoryError(DeviceError, MemoryError):
    """A device has no room for a buffer."""


class CompileError(DeviceError):
    """A kernel did not compile."""
