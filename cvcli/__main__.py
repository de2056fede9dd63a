"""``python -m cvcli``."""

from cvcli.cli import main

if __name__ == "__main__":
    main()
