// One result pixel of a resampling by itself, from all the pixels it is made of.
#pragma once

#include "core/resample_bytes_cuda.h"

namespace cvcli {

CVCLI_FN int32_t weight_of(const ResampleAxis& axis, int32_t index, int32_t k) {
    const WeightPair* pair =
        static_cast<const WeightPair*>(axis.weights) + int64_t{index} * axis.most + k / 2;
    const int32_t shift = k % 2 * 16;
    const int32_t high = static_cast<int16_t>(read_only(&pair->high) >> shift);
    const int32_t low = static_cast<int16_t>(read_only(&pair->low) >> shift);
    return high * (1 << kLowBits) + low;
}

// One result pixel from all the pixels it is made of: for few taps, or too many for a tile.
template <int C, class R>
CVCLI_FN Pixel<uint8_t, C> resampled(Pixel<uint8_t, C>, const R& reader,
                                     const ResampleParams& params, int32_t iy, int32_t ix) {
    const int32_t y = read_only(params.y.spans + 2 * int64_t{iy});
    const int32_t x = read_only(params.x.spans + 2 * int64_t{ix});
    const int32_t rows = read_only(params.y.spans + 2 * int64_t{iy} + 1);
    const int32_t columns = read_only(params.x.spans + 2 * int64_t{ix} + 1);
    const uint32_t half = 1u << (kWeightBits - 1);
    uint32_t sums[C];
    for (int c = 0; c < C; ++c) sums[c] = half;
#pragma unroll 2
    for (int32_t k = 0; k < rows; ++k) {
        uint32_t row[C];
        for (int c = 0; c < C; ++c) row[c] = half;
#pragma unroll 2
        for (int32_t j = 0; j < columns; ++j) {
            const Pixel<uint8_t, C> pixel = reader.at(y + k, x + j);
            const uint32_t weight = static_cast<uint32_t>(weight_of(params.x, ix, j));
            for (int c = 0; c < C; ++c) row[c] += weight * pixel.v[c];
        }
        const uint32_t weight = static_cast<uint32_t>(weight_of(params.y, iy, k));
        for (int c = 0; c < C; ++c) sums[c] += weight * saturated(row[c], kWeightBits);
    }
    Pixel<uint8_t, C> out;
    for (int c = 0; c < C; ++c) out.v[c] = static_cast<uint8_t>(saturated(sums[c], kWeightBits));
    return out;
}

template <class T, int C, class R>
CVCLI_FN Pixel<T, C> resampled(Pixel<T, C>, const R& reader, const ResampleParams& params,
                               int32_t iy, int32_t ix) {
    const int32_t y = read_only(params.y.spans + 2 * int64_t{iy});
    const int32_t x = read_only(params.x.spans + 2 * int64_t{ix});
    const int32_t rows = read_only(params.y.spans + 2 * int64_t{iy} + 1);
    const int32_t columns = read_only(params.x.spans + 2 * int64_t{ix} + 1);
    const float* of_y = static_cast<const float*>(params.y.weights) + int64_t{iy} * params.y.most;
    const float* of_x = static_cast<const float*>(params.x.weights) + int64_t{ix} * params.x.most;
    float sums[C] = {};
#pragma unroll 2
    for (int32_t k = 0; k < rows; ++k) {
        float row[C] = {};
#pragma unroll 2
        for (int32_t j = 0; j < columns; ++j) {
            const Pixel<T, C> pixel = reader.at(y + k, x + j);
            const float weight = read_only(of_x + j);
            for (int c = 0; c < C; ++c) {
                const float product = weight * static_cast<float>(pixel.v[c]);
                row[c] = j ? row[c] + product : product;
            }
        }
        const float weight = read_only(of_y + k);
        for (int c = 0; c < C; ++c) sums[c] = k ? sums[c] + weight * row[c] : weight * row[c];
    }
    Pixel<T, C> out;
    for (int c = 0; c < C; ++c) out.v[c] = to_sample<T>(sums[c]);
    return out;
}

}  // namespace cvcli
