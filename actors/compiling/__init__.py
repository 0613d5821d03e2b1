"""How kernels are compiled and kept: `actors.kernel.compiled` is the only door to it."""
