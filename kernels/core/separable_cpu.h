// The separable pattern on the CPU: rows are filtered as they enter the ring, columns as they
// leave it, four rows of results at a time, as reading the ring is what takes the time.
#pragma once

#include "core/floats_cpu.h"
#include "core/stencil_cpu.h"

namespace cvcli {

constexpr int kGroup = 4;

// N rows of weighed samples, each from the taps one further down. Up to a vector more than `count`
// is read and written.
template <class T, int R, int N>
void weigh_block(const float* const* taps, const float* half, float* out, int64_t from, int count) {
    const float* at[2 * R + N];
    Floats weights[R + 1];
    for (int k = 0; k < 2 * R + N; ++k) at[k] = taps[k] + from;
    for (int k = 0; k <= R; ++k) weights[k] = all_floats(half[k]);
    for (int i = 0; i < count; i += Floats::kCount) {
        Floats tap[2 * R + N];
        for (int k = 0; k < 2 * R + N; ++k) tap[k] = load_floats(at[k] + i);
        for (int n = 0; n < N; ++n) {
            Floats acc = weights[0] * tap[R + n];
            for (int k = 1; k <= R; ++k) {
                acc = add_weighted<T>(acc, weights[k], tap[R + n - k] + tap[R + n + k]);
            }
            store_floats(out + n * kBlock + i, acc);
        }
    }
}

// Adds N pairs of taps to sums.
template <class T, int N>
void add_pairs(const float* const* low, const float* const* high, const float* weights, float* out,
               int64_t from, int count) {
    const float* before[N];
    const float* after[N];
    Floats weight[N];
    for (int k = 0; k < N; ++k) {
        before[k] = low[-k] + from;
        after[k] = high[k] + from;
        weight[k] = all_floats(weights[k]);
    }
    for (int i = 0; i < count; i += Floats::kCount) {
        Floats acc = load_floats(out + i);
        for (int k = 0; k < N; ++k) {
            const Floats pair = load_floats(before[k] + i) + load_floats(after[k] + i);
            acc = add_weighted<T>(acc, weight[k], pair);
        }
        store_floats(out + i, acc);
    }
}

template <class T>
void weigh_long_block(const float* const* taps, int32_t radius, const float* half, float* out,
                      int64_t from, int count) {
    constexpr int some = 4;
    weigh_block<T, some, 1>(taps + radius - some, half, out, from, count);
    int32_t k = some + 1;
    for (; k + some <= radius + 1; k += some) {
        add_pairs<T, some>(taps + radius - k, taps + radius + k, half + k, out, from, count);
    }
    for (; k <= radius; ++k) {
        add_pairs<T, 1>(taps + radius - k, taps + radius + k, half + k, out, from, count);
    }
}

template <class T, int N>
CVCLI_ONCE void weigh_rows(const float* const* taps, int32_t radius, const float* half, float* out,
                           int64_t from, int count) {
    switch (radius) {
        case 0:
            return weigh_block<T, 0, N>(taps, half, out, from, count);
        case 1:
            return weigh_block<T, 1, N>(taps, half, out, from, count);
        case 2:
            return weigh_block<T, 2, N>(taps, half, out, from, count);
        case 3:
            return weigh_block<T, 3, N>(taps, half, out, from, count);
        case 4:
            return weigh_block<T, 4, N>(taps, half, out, from, count);
        default:
            break;
    }
    for (int n = 0; n < N; ++n) {
        float* to = out + n * kBlock;
        if (radius == 7) {
            weigh_block<T, 7, 1>(taps + n, half, to, from, count);
        } else {
            weigh_long_block<T>(taps + n, radius, half, to, from, count);
        }
    }
}

// A row through the filter on its way into the ring.
template <class T>
CVCLI_ONCE void weigh_line(const SeparableParams& params, const float* wide, const float** taps,
                           float* slot, int64_t count, int channels) {
    for (int k = 0; k <= 2 * params.radius_x; ++k) taps[k] = wide + k * channels;
    for (int64_t at = 0; at < count; at += kBlock) {
        const int part = static_cast<int>(smaller(count - at, int64_t{kBlock}));
        weigh_rows<T, 1>(taps, params.radius_x, params.half_x, slot + at, at, part);
    }
}

template <class T>
void sharpen_block(const T* middle, float* __restrict block, float amount, int count) {
    for (int i = 0; i < count; ++i) {
        block[i] = unsharp(static_cast<float>(middle[i]), block[i], amount);
    }
}

// Columns of N rows of the ring into as many rows of results.
template <class T, int N>
CVCLI_ONCE void weigh_columns(const SeparableParams& params, const float* const* slots,
                              const T* middle, T* const* out, int64_t count) {
    float block[N * kBlock];
    for (int64_t at = 0; at < count; at += kBlock) {
        const int part = static_cast<int>(smaller(count - at, int64_t{kBlock}));
        weigh_rows<T, N>(slots, params.radius_y, params.half_y, block, at, part);
        for (int n = 0; n < N; ++n) {
            float* row = block + n * kBlock;
            if (middle) sharpen_block(middle + at, row, params.amount, part);
            to_samples(row, out[n] + at, part);
        }
    }
}

template <class T, int C>
int32_t separable_rows(const Share<SeparableParams>& share) {
    const SeparableParams& params = share.params;
    const int32_t rx = params.radius_x, ry = params.radius_y;
    const int64_t count = int64_t{share.dst.width} * C;
    const int64_t stride = (count + Floats::kCount - 1) / Floats::kCount * Floats::kCount;
    Scratch scratch;
    const Padded<T, C, float> padded(share, scratch, rx);
    const Writer<T, C> writer(share, scratch);
    // Rows that go through further steps, or have something to be compared with, leave singly.
    const int32_t group = writer.is_direct() && !params.sharpens ? kGroup : 1;
    float* wide = scratch.take<float>(int64_t{padded.count()} * C);
    float* ring = scratch.take<float>((2 * ry + group) * stride);
    float** slots = scratch.take<float*>(2 * ry + group);
    const float** taps = scratch.take<const float*>(2 * rx + 1);
    if (scratch.failed()) return kNoMemory;
    const auto line = [&](int32_t y, float* slot) {
        padded.fill(y, wide, AsFloat<T>());
        weigh_line<T>(params, wide, taps, slot, count, C);
    };
    const auto emit = [&](int32_t row, float** rows, int32_t made) {
        T* out[kGroup];
        for (int n = 0; n < made; ++n) out[n] = writer.begin(row + n);
        if (made == kGroup) return weigh_columns<T, kGroup>(params, rows, nullptr, out, count);
        for (int n = 0; n < made; ++n) {
            const T* middle = params.sharpens ? padded.middle(row) : nullptr;
            weigh_columns<T, 1>(params, rows + n, middle, out + n, count);
            writer.end(row + n);
        }
    };
    slide(share, ry, group, ring, stride, slots, line, emit);
    return 0;
}

}  // namespace cvcli
