// The map pattern: every destination pixel is one source pixel or one constant (a Move), passed
// through a pointwise functor. One schedule a device.
#pragma once

#include "core/gather.h"
#include "core/geometry.h"
#include "core/pointwise.h"

#if CVCLI_CUDA
#include "core/map_rows_cuda.h"
#include "core/map_tiles_cuda.h"
#else
#include "core/map_cpu.h"
#endif
