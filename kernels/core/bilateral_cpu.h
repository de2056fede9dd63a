// The bilateral pattern on the CPU: channels apart, so that vectors hold neighbouring pixels.
#pragma once

#include "core/floats_cpu.h"
#include "core/stencil_cpu.h"

namespace cvcli {

// The same as colour_weight, on a vector.
template <class T>
Floats colour_weights(const BilateralParams& params, Floats difference) {
    if constexpr (sizeof(T) == 1) {
        return look_up(params.colours, difference);
    } else {
        const Floats place = difference * all_floats(params.scale);
        const Floats last = all_floats(static_cast<float>(params.entries - 1));
        const Floats within = where_below(place, last, place);
        const Floats low = look_up(params.colours, within);
        const Floats high = look_up(params.colours + 1, within);
        return where_below(place, last, low + (within - whole(within)) * (high - low));
    }
}

// A vector of pixels from x on. Planes of a row are `stride` apart; `near` holds where each tap
// reads its first plane.
template <class T, int N>
void weigh_pixels(const BilateralParams& params, const float* const* near, const float* middle,
                  int64_t stride, int32_t x, Floats* values) {
    Floats own[N], sum = all_floats(1.0f);
    for (int c = 0; c < N; ++c) values[c] = own[c] = load_floats(middle + c * stride + x);
    for (int32_t k = 0; k < params.count; ++k) {
        Floats tap[N];
        for (int c = 0; c < N; ++c) tap[c] = load_floats(near[k] + c * stride + x);
        Floats difference = magnitude(tap[0] - own[0]);
        for (int c = 1; c < N; ++c) difference = difference + magnitude(tap[c] - own[c]);
        const Floats space = all_floats(params.taps[k].weight);
        const Floats weight = space * colour_weights<T>(params, difference);
        sum = sum + weight;
        for (int c = 0; c < N; ++c) {
            const Floats value = where_below(all_floats(0.0f), weight, tap[c]);
            values[c] = values[c] + weight * value;
        }
    }
    const Floats share = all_floats(1.0f) / sum;
    for (int c = 0; c < N; ++c) values[c] = values[c] * share;
}

// A block of pixels from x on; up to a vector more than `count` is read and written.
template <class T, int N>
CVCLI_ONCE void weigh_block(const BilateralParams& params, const float* const* near,
                            const float* middle, int64_t stride, int32_t x, int count,
                            float (*block)[kBlock]) {
    for (int i = 0; i < count; i += Floats::kCount) {
        Floats values[N];
        weigh_pixels<T, N>(params, near, middle, stride, x + i, values);
        for (int c = 0; c < N; ++c) store_floats(block[c] + i, values[c]);
    }
}

// Results of a block; alpha is the image's own.
template <class T, int C>
void put_block(const float (*values)[kBlock], const float* middle, int64_t stride, T* out,
               int count) {
    for (int c = 0; c < kColours<C>; ++c) {
        T samples[kBlock];
        to_samples(values[c], samples, count);
        for (int i = 0; i < count; ++i) out[i * C + c] = samples[i];
    }
    if constexpr (kHasAlpha<C>) {
        for (int i = 0; i < count; ++i) {
            out[i * C + C - 1] = static_cast<T>(middle[(C - 1) * stride + i]);
        }
    }
}

template <class T, int C>
void bilateral_row(const BilateralParams& params, float** rows, const float** near, int64_t stride,
                   T* out, int32_t width) {
    constexpr int N = kColours<C>;
    const float* middle = rows[params.radius] + params.radius;
    for (int32_t k = 0; k < params.count; ++k) {
        const Tap& tap = params.taps[k];
        near[k] = rows[params.radius + tap.dy] + params.radius + tap.dx;
    }
    for (int32_t x = 0; x < width; x += kBlock) {
        float block[N][kBlock];
        const int part = smaller(width - x, kBlock);
        weigh_block<T, N>(params, near, middle, stride, x, part, block);
        put_block<T, C>(block, middle + x, stride, out + int64_t{x} * C, part);
    }
}

template <class T, int C>
int32_t bilateral_rows(const Share<BilateralParams>& share) {
    const BilateralParams& params = share.params;
    const int32_t radius = params.radius;
    Scratch scratch;
    const Padded<T, C, float> padded(share, scratch, radius);
    const Writer<T, C> writer(share, scratch);
    const int64_t stride = padded.count();
    float* wide = scratch.take<float>(stride * C);
    // A vector may reach past the last row: what it finds there must be samples too.
    const int64_t length = (2 * radius + 1) * stride * C + Floats::kCount;
    float* ring = scratch.take<float>(length);
    float** slots = scratch.take<float*>(2 * radius + 1);
    const float** near = scratch.take<const float*>(params.count);
    if (scratch.failed()) return kNoMemory;
    std::memset(ring + length - Floats::kCount, 0, sizeof(Floats));
    slide(
        share, radius, 1, ring, stride * C, slots,
        [&](int32_t y, float* slot) {
            padded.fill(y, wide, AsFloat<T>());
            float* planes[C];
            for (int c = 0; c < C; ++c) planes[c] = slot + c * stride;
            split_lanes<float, C>(wide, planes, padded.count());
        },
        [&](int32_t row, float** rows, int32_t) {
            T* out = writer.begin(row);
            bilateral_row<T, C>(params, rows, near, stride, out, share.dst.width);
            writer.end(row);
        });
    return 0;
}

}  // namespace cvcli
