// resample on the GPU: tiles whose source goes through shared memory, or pixel by pixel.
#pragma once

#include "core/resample_bytes_cuda.h"
#include "core/resample_floats_cuda.h"
#include "core/resample_halves_cuda.h"

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

template <class W>
CVCLI_FN void resample_points(const W& work, const Each<ResampleParams>& each) {
    for_each_tile(work.args, kBlockWarps, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image src = work.src(index);
                      const Image dst = work.dst(index);
                      const ResampleParams& params = work.params(each, index);
                      const auto reader = work.reader(src, index);
                      const int32_t thread = static_cast<int32_t>(threadIdx.x);
                      const int32_t y = tile_y * kBlockWarps + thread / kWarp;
                      const int32_t x = tile_x * kWarp + lane();
                      if (x >= dst.width || y >= dst.height) return;
                      work.write(dst, y, x,
                                 resampled(typename W::In{}, reader, params, params.frame.y0 + y,
                                           params.frame.x0 + x));
                  });
}

// `Numbers` are those of resample_bytes or resample_floats, one for halves, or none for points.
template <int... Numbers, class W>
CVCLI_FN void resample(const W& work, const Each<ResampleParams>& each) {
    if constexpr (sizeof...(Numbers) == 0) {
        resample_points(work, each);
    } else if constexpr (sizeof...(Numbers) == 1) {
        resample_halves(work, each);
    } else if constexpr (sizeof(typename W::In::Sample) == 1) {
        resample_bytes<Numbers...>(work, each);
    } else {
        resample_floats<Numbers...>(work, each);
    }
}

}  // namespace cvcli
