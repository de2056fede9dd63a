// The smallest or the largest sample of a rectangle: rows first, then columns.
#pragma once

#include "core/pattern.h"
#include "core/stencil.h"

namespace cvcli {

struct RectangleParams {
    Frame frame;
    Edges edges;
    int32_t radius_x;
    int32_t radius_y;
    int32_t largest;
    int32_t reserved;
};

static_assert(sizeof(RectangleParams) == 64, "RectangleParams is packed by Python");

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/rectangle_cuda.h"
#else
#include "core/rectangle_cpu.h"
#endif

CVCLI_PATTERN(rectangle, RectangleParams)
