// Host exports of steps on pixels: each over a row.
#pragma once

#include "core/pixels.h"

namespace cvcli {

template <class T, int C, class Step>
void step_row(const Step& step, const void* in, void* out, int64_t width) {
    using Out = decltype(step(Pixel<T, C>{}));
    const uint8_t* from = static_cast<const uint8_t*>(in);
    uint8_t* to = static_cast<uint8_t*>(out);
    for (int64_t x = 0; x < width; ++x) {
        Pixel<T, C> pixel;
        std::memcpy(&pixel, from + x * int64_t{sizeof pixel}, sizeof pixel);
        const Out result = step(pixel);
        std::memcpy(to + x * int64_t{sizeof result}, &result, sizeof result);
    }
}

template <class T, int C, class Step>
void pixels_row(const void* params, const void* in, void* out, int64_t width) {
    if constexpr (Step::template takes<T, C>()) {
        Step step;
        std::memcpy(&step, params, sizeof step);
        step_row<T, C>(step, in, out, width);
    }
}

template <int C, class Step>
void samples_row(const void* params, const void* in, void* out, int64_t width) {
    Step step;
    std::memcpy(&step, params, sizeof step);
    step_row<float, C>(step, in, out, width);
}

}  // namespace cvcli

#define CVCLI_PIXELS_ROW(name, Step, suffix, T, C)                                             \
    CVCLI_EXPORT void cvcli_pixels_##name##_##suffix##_##C(const void* params, const void* in, \
                                                           void* out, int64_t width) {         \
        cvcli::pixels_row<T, C, cvcli::Step>(params, in, out, width);                          \
    }

#define CVCLI_PIXELS_ROWS(name, Step, suffix, T) \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 1)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 2)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 3)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 4)

// Follows a step's struct; `name` is its header's, or header_Type where there are several in it.
#define CVCLI_PIXELWISE(name, Step)              \
    CVCLI_PIXELS_ROWS(name, Step, u8, uint8_t)   \
    CVCLI_PIXELS_ROWS(name, Step, u16, uint16_t) \
    CVCLI_PIXELS_ROWS(name, Step, f32, float)

#define CVCLI_SAMPLES_ROW(name, Operator, C)                                                    \
    CVCLI_EXPORT void cvcli_samples_##name##_##C(const void* params, const void* in, void* out, \
                                                 int64_t width) {                               \
        cvcli::samples_row<C, cvcli::Samples<cvcli::Operator<float>>>(params, in, out, width);  \
    }

// The row functions of a pointwise operator where it is a step among others.
#define CVCLI_SAMPLES(name, Operator)    \
    CVCLI_SAMPLES_ROW(name, Operator, 1) \
    CVCLI_SAMPLES_ROW(name, Operator, 2) \
    CVCLI_SAMPLES_ROW(name, Operator, 3) \
    CVCLI_SAMPLES_ROW(name, Operator, 4)
