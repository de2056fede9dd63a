// What a map does to each sample on its way: nothing, one table lookup, or a run of operators.
#pragma once

#include "core/image.h"
#include "core/pixel.h"
#include "core/pixels.h"

// Follows an operator's struct and makes its host exports; NVRTC needs only the struct.
#if CVCLI_CUDA
#define CVCLI_POINTWISE(name, Operator)
#else
#include "core/pointwise_cpu.h"
#define CVCLI_POINTWISE(name, Operator)                                                     \
    CVCLI_EXPORT void cvcli_table_##name(const double* params, int32_t levels, void* out) { \
        cvcli::fill_table<cvcli::Operator<double>>(params, levels, out);                    \
    }                                                                                       \
    CVCLI_EXPORT void cvcli_row_##name(const void* params, float* row, int64_t width,       \
                                       int32_t channels) {                                  \
        cvcli::apply_row<cvcli::Operator<float>>(params, row, width, channels);             \
    }                                                                                       \
    CVCLI_SAMPLES(name, Operator)
#endif

namespace cvcli {

// A functor maps the raw bits of one sample; kMoves says that it changes none. The GPU calls
// ready() in every warp once its loads are under way and before the first sample.
struct Identity {
    static constexpr bool kMoves = true;
    CVCLI_FN void ready() const {}
    template <class B>
    CVCLI_FN B operator()(B bits) const {
        return bits;
    }
};

// Operators in order, then one NaN for all.
template <class... Operators>
struct Pipe;

template <>
struct Pipe<> {
    static constexpr bool kMoves = true;
    CVCLI_FN void ready() const {}
    CVCLI_FN float run(float value) const { return value; }
    CVCLI_FN uint32_t operator()(uint32_t bits) const { return bits; }
};

template <class First, class... Rest>
struct Pipe<First, Rest...> {
    static constexpr bool kMoves = false;
    First first;
    Pipe<Rest...> rest;
    CVCLI_FN void ready() const {}
    CVCLI_FN float run(float value) const { return rest.run(first(value)); }
    CVCLI_FN uint32_t operator()(uint32_t bits) const {
        return bits_of(canonical(run(float_of(bits))));
    }
};

CVCLI_FN Pipe<> pipe() {
    return {};
}

template <class First, class... Rest>
CVCLI_FN Pipe<First, Rest...> pipe(const First& first, const Rest&... rest) {
    return {first, pipe(rest...)};
}

}  // namespace cvcli
