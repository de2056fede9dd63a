// A warp: every pixel of the result from its place in the source, by one of three filters.
#pragma once

#include "core/warp.h"

#if CVCLI_CUDA
#include "core/warp_cuda.h"
#else
#include "core/warp_cpu.h"
#endif

CVCLI_PATTERN(warp, WarpParams)
