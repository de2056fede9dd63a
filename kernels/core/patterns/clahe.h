// Each sample through the tables of the four tiles whose centres are around it, interpolated.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct ClaheParams {
    Frame frame;
    int32_t across;
    int32_t down;
    float per_width;   // 1 / a tile's width
    float per_height;  // 1 / a tile's height
};

// Two neighbouring tiles on one axis, and the share of the second one.
struct Between {
    int32_t first;
    int32_t second;
    float share;
};

CVCLI_FN Between between(int32_t index, float per_tile, int32_t tiles) {
    const float at = static_cast<float>(index) * per_tile - 0.5f;
    const float floored = floor_of(at);
    const int32_t first = static_cast<int32_t>(floored);
    return {larger(first, 0), smaller(first + 1, tiles - 1), at - floored};
}

template <class T, int C>
CVCLI_FN Pixel<T, C> clahe_pixel(const Image& aux, int32_t across, const Between& y,
                                 const Between& x, Pixel<T, C> pixel) {
    const uint8_t* rows[4] = {row_at<const uint8_t>(aux, y.first * across + x.first),
                              row_at<const uint8_t>(aux, y.first * across + x.second),
                              row_at<const uint8_t>(aux, y.second * across + x.first),
                              row_at<const uint8_t>(aux, y.second * across + x.second)};
    const float from_x = 1.0f - x.share, from_y = 1.0f - y.share;
    for (int c = 0; c < C; ++c) {
        if (is_alpha<C>(c)) continue;
        const int at = c * kLevels + static_cast<int>(pixel.v[c]);
        float values[4];
        for (int i = 0; i < 4; ++i) values[i] = static_cast<float>(read_only(rows[i] + at));
        const float above = values[0] * from_x + values[1] * x.share;
        const float below = values[2] * from_x + values[3] * x.share;
        pixel.v[c] = to_sample<T>(above * from_y + below * y.share);
    }
    return pixel;
}

#if CVCLI_CUDA

template <class W>
CVCLI_FN void clahe(const W& work, const Each<ClaheParams>& each) {
    for_each_tile(
        work.args, kBlockWarps, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index);
            const Image dst = work.dst(index);
            const Image aux = work.aux(index);
            const ClaheParams& params = work.params(each, index);
            const auto reader = work.reader(src, index);
            const int32_t y = tile_y * kBlockWarps + static_cast<int32_t>(threadIdx.x) / kWarp;
            if (y >= dst.height) return;
            const Between rows = between(y, params.per_height, params.down);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int32_t x = tile_x * 128 + i * kWarp + lane();
                if (x >= dst.width) continue;
                const Between columns = between(x, params.per_width, params.across);
                work.write(dst, y, x,
                           clahe_pixel(aux, params.across, rows, columns, reader.at(y, x)));
            }
        });
}

#else

template <class T, int C>
int32_t clahe_rows(const Share<ClaheParams>& share) {
    if constexpr (sizeof(T) == 1) {
        const ClaheParams& params = share.params;
        const int32_t width = share.dst.width;
        Scratch scratch;
        const Reader<T, C> reader(share, scratch);
        const Writer<T, C> writer(share, scratch);
        T* room = scratch.take<T>(int64_t{width} * C);
        Between* columns = scratch.take<Between>(width);
        if (scratch.failed()) return kNoMemory;
        for (int32_t x = 0; x < width; ++x) {
            columns[x] = between(x, params.per_width, params.across);
        }
        for (int32_t y = share.begin; y < share.end; ++y) {
            const Between rows = between(y, params.per_height, params.down);
            const T* from = reader.row(y, room);
            T* to = writer.begin(y);
            for (int32_t x = 0; x < width; ++x) {
                Pixel<T, C> pixel;
                std::memcpy(&pixel, from + int64_t{x} * C, sizeof pixel);
                pixel = clahe_pixel(share.aux, params.across, rows, columns[x], pixel);
                std::memcpy(to + int64_t{x} * C, &pixel, sizeof pixel);
            }
            writer.end(y);
        }
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(clahe, ClaheParams)
