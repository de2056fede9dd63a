// A quarter of the pixels of an image of 16 bits or floats, each from two rows of two by weights of
// a half. A warp makes a part of a row: samples side by side as they lie, or pixels where steps
// come before or after.
#pragma once

#include "core/resample_halves_cuda.h"

namespace cvcli {

constexpr int kPairsWidth = 2 * kWarp;

// As the tables of weights would have it: rows first, products added one by one.
CVCLI_FN float mean_of_pairs(float a, float b, float c, float d) {
    const float above = 0.5f * a + 0.5f * b, below = 0.5f * c + 0.5f * d;
    return 0.5f * above + 0.5f * below;
}

// Samples `first`, and on in steps of a warp, of `count` of a row of results.
template <int C, class T>
CVCLI_FN void halve_samples(const T* above, const T* below, T* to, int32_t first, int32_t count) {
    constexpr int some = kPairsWidth * C / kWarp;
    T loaded[some][4] = {};
#pragma unroll
    for (int i = 0; i < some; ++i) {
        const int32_t at = first + i * kWarp;
        if (at >= count) continue;
        const int64_t from = int64_t{at / C} * C + at;  // pixel 2 * (at / C), channel at % C
        loaded[i][0] = read_only(above + from), loaded[i][1] = read_only(above + from + C);
        loaded[i][2] = read_only(below + from), loaded[i][3] = read_only(below + from + C);
    }
#pragma unroll
    for (int i = 0; i < some; ++i) {
        const int32_t at = first + i * kWarp;
        const T(&v)[4] = loaded[i];
        if (at < count) to[at] = to_sample<T>(mean_of_pairs(v[0], v[1], v[2], v[3]));
    }
}

template <class P, class R>
CVCLI_FN P halved_pixel(const R& reader, int32_t y, int32_t x) {
    const P a = reader.at(y, x), b = reader.at(y, x + 1);
    const P c = reader.at(y + 1, x), d = reader.at(y + 1, x + 1);
    P out;
#pragma unroll
    for (int i = 0; i < P::kChannels; ++i) {
        out.v[i] = to_sample<typename P::Sample>(mean_of_pairs(a.v[i], b.v[i], c.v[i], d.v[i]));
    }
    return out;
}

template <class W>
CVCLI_FN void resample_pairs(const W& work, const Each<ResampleParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    for_each_tile(
        work.args, kBlockWarps, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const Frame& frame = work.params(each, index).frame;
            const auto reader = work.reader(src, index);
            const int32_t y = tile_y * kBlockWarps + static_cast<int32_t>(threadIdx.x) / kWarp;
            const int32_t x = tile_x * kPairsWidth, from_y = 2 * (frame.y0 + y);
            if (x >= dst.width || y >= dst.height) return;
            const int32_t from_x = 2 * (frame.x0 + x);
            const int32_t count = smaller(kPairsWidth, dst.width - x);
            if constexpr (W::Read::kDirect && W::kPlainOut) {
                halve_samples<C>(row_at<const T>(src, from_y) + int64_t{from_x} * C,
                                 row_at<const T>(src, from_y + 1) + int64_t{from_x} * C,
                                 row_at<T>(dst, y) + int64_t{x} * C, lane(), count * C);
            } else {
#pragma unroll
                for (int i = lane(); i < kPairsWidth; i += kWarp) {
                    if (i >= count) break;
                    work.write(dst, y, x + i, halved_pixel<In>(reader, from_y, from_x + 2 * i));
                }
            }
        });
}

}  // namespace cvcli
