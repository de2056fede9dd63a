// The dense pattern on the CPU: rows of floats in a ring, taps added a few at a time.
#pragma once

#include "core/floats_cpu.h"
#include "core/stencil_cpu.h"

namespace cvcli {

// Adds N taps to sums, or begins them.
template <int N, bool First>
void add_taps(const float* const* at, const Tap* taps, float* sums, int count) {
    for (int i = 0; i < count; i += Floats::kCount) {
        Floats acc =
            First ? load_floats(at[0] + i) * all_floats(taps[0].weight) : load_floats(sums + i);
        for (int k = First ? 1 : 0; k < N; ++k) {
            acc = acc + all_floats(taps[k].weight) * load_floats(at[k] + i);
        }
        store_floats(sums + i, acc);
    }
}

// The sums of a block of samples; `at` tells where each tap reads.
inline void sum_taps(const float* const* at, const Tap* taps, int32_t taps_count, float* sums,
                     int count) {
    int32_t k = 0;
    if (taps_count == 0) {
        for (int i = 0; i < count; ++i) sums[i] = 0.0f;
    } else if (taps_count == 5) {
        return add_taps<5, true>(at, taps, sums, count);
    } else if (taps_count == 9) {
        return add_taps<9, true>(at, taps, sums, count);
    } else {
        add_taps<1, true>(at, taps, sums, count);
        k = 1;
    }
    for (; k + 6 <= taps_count; k += 6) add_taps<6, false>(at + k, taps + k, sums, count);
    for (; k < taps_count; ++k) add_taps<1, false>(at + k, taps + k, sums, count);
}

template <class T>
void blend_block(const float* middle, float* __restrict sums, float amount, int count) {
    for (int i = 0; i < count; ++i) sums[i] = blended<T>(middle[i], sums[i], amount);
}

// Puts the samples back that lie on the edge of the whole image.
template <class T, int C>
void keep_edges(const Share<DenseParams>& share, int32_t row, const float* middle, T* out) {
    const Frame& frame = share.params.frame;
    const int32_t y = row + frame.y0, width = share.dst.width;
    const bool whole = y == 0 || y == frame.height - 1;
    for (int32_t x = 0; x < width; ++x) {
        const int32_t at = x + frame.x0;
        if (!whole && at != 0 && at != frame.width - 1) continue;
        for (int c = 0; c < C; ++c) {
            out[int64_t{x} * C + c] = to_sample<T>(middle[int64_t{x} * C + c]);
        }
    }
}

template <class T>
CVCLI_ONCE void filter_row(const DenseParams& params, const float** at, const float* middle, T* out,
                           int64_t count) {
    float sums[kBlock];
    for (int64_t from = 0; from < count; from += kBlock) {
        const int part = static_cast<int>(smaller(count - from, int64_t{kBlock}));
        sum_taps(at, params.taps, params.count, sums, part);
        if (params.blends) blend_block<T>(middle + from, sums, params.amount, part);
        to_samples(sums, out + from, part);
        for (int32_t k = 0; k < params.count; ++k) at[k] += part;
    }
}

template <class T, int C>
int32_t dense_rows(const Share<DenseParams>& share) {
    const DenseParams& params = share.params;
    const int32_t rx = params.radius_x, ry = params.radius_y;
    const int64_t count = int64_t{share.dst.width} * C;
    Scratch scratch;
    const Padded<T, C, float> padded(share, scratch, rx);
    const Writer<T, C> writer(share, scratch);
    const int64_t stride = int64_t{padded.count()} * C + Floats::kCount;
    float* ring = scratch.take<float>((2 * ry + 1) * stride);
    float** slots = scratch.take<float*>(2 * ry + 1);
    const float** at = scratch.take<const float*>(params.count);
    if (scratch.failed()) return kNoMemory;
    slide(
        share, ry, 1, ring, stride, slots,
        [&](int32_t y, float* slot) { padded.fill(y, slot, AsFloat<T>()); },
        [&](int32_t row, float** rows, int32_t) {
            for (int32_t k = 0; k < params.count; ++k) {
                at[k] = rows[ry + params.taps[k].dy] + (rx + params.taps[k].dx) * C;
            }
            const float* middle = rows[ry] + rx * C;
            T* out = writer.begin(row);
            filter_row(params, at, middle, out, count);
            if (params.blends) keep_edges<T, C>(share, row, middle, out);
            writer.end(row);
        });
    return 0;
}

}  // namespace cvcli
