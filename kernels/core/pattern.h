// What every pattern of core/patterns is made with; one schedule a device.
#pragma once

#include "core/pixels.h"

#if CVCLI_CUDA
#include "core/work_cuda.h"
#else
#include "core/rows_cpu.h"
#endif
