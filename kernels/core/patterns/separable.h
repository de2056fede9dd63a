// A symmetric filter along rows, then columns: a blur, or an image made sharper with one.
#pragma once

#include "core/pattern.h"
#include "core/stencil.h"

namespace cvcli {

struct SeparableParams {
    Frame frame;
    Edges edges;
    int32_t radius_x;
    int32_t radius_y;
    int32_t sharpens;
    float amount;
    const float* half_x;
    const float* half_y;
};

static_assert(sizeof(SeparableParams) == 80, "SeparableParams is packed by Python");

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/separable_cuda.h"
#else
#include "core/separable_cpu.h"
#endif

CVCLI_PATTERN(separable, SeparableParams)
