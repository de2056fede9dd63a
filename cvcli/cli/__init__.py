"""The ``cvcli`` command. Typer and Rich are imported only here, and only when they are needed."""

import gc
import os
import sys


def main() -> None:
    """Run the command; the process ends with one of the codes in `cvcli.errors`."""
    _start_light()
    try:
        sys.exit(_code())
    finally:
        _let_go_of_stderr()
        # What is alive now goes with the process, so nobody needs to look for garbage in it.
        gc.freeze()


def _start_light() -> None:
    """Leave out what costs a tenth of a second before the first image is read.

    NumPy's linear algebra, which isn't used here, starts a thread a core, and imports make much
    that the garbage collector looks at again and again, and no garbage.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()


def _code() -> int:
    try:
        code = _main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("cvcli: interrupted", file=sys.stderr)
        code = 130
    except OSError as error:
        # Only writing to stdout gets here: everything else is reported by name. Python would
        # complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
        if not isinstance(error, BrokenPipeError):
            print(f"cvcli: stdout can't be written ({error.strerror})", file=sys.stderr)
            code = 1
    return code


def _let_go_of_stderr() -> None:
    """Drop messages that can't be written: Python would end with a code of its own for them."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _main() -> int:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from cvcli import __version__

        print(f"cvcli {__version__}")
        return 0
    if any(word.startswith("--cluster") for word in sys.argv):
        from cvcli.batch.early import prepare_for

        prepare_for(sys.argv)
    from cvcli.cli.app import run_app

    return run_app()
