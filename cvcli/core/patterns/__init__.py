"""Access patterns, one file each; their kernels are in ``kernels/core/patterns``."""
