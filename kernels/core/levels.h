// Per-image statistics, and the lookup tables and levels that are made from them. All of it is the
// same on both devices: sums are of integers, so their order is free, and the rest is done in one
// order by one thread an image.
#pragma once

#include "core/pattern.h"

namespace cvcli {

constexpr int kLevels = 256;
constexpr int kPartRows = 16;  // rows of an image that one part of its statistics is of

// Of one channel of a part: NaN is left out. `sum` is of integers, or of floats times 2^24.
struct Summary {
    float low;
    float high;
    int64_t sum;
};

constexpr double kSumUnit = 16777216.0;

// result = sample * scale + offset
struct Level {
    double scale;
    double offset;
};

template <class T>
CVCLI_FN int64_t summed(T value) {
    return value;
}

// Clamped where a sum of 2^31 samples still fits 64 bits.
template <>
CVCLI_FN int64_t summed<float>(float value) {
    const double clamped = value < -256.0f ? -256.0 : value > 256.0f ? 256.0 : double(value);
    return value == value ? static_cast<int64_t>(clamped * kSumUnit) : 0;
}

CVCLI_FN Summary no_samples() {
    return {float_of(0x7f800000u), float_of(0xff800000u), 0};
}

// Adding zero turns -0 into +0, so that of two zeros it does not matter which comes first.
template <class T>
CVCLI_FN void add_sample(Summary& total, T value) {
    const float number = static_cast<float>(value) + 0.0f;
    total.low = number < total.low ? number : total.low;
    total.high = number > total.high ? number : total.high;
    total.sum += summed(value);
}

CVCLI_FN void add_summary(Summary& total, const Summary& part) {
    total.low = part.low < total.low ? part.low : total.low;
    total.high = part.high > total.high ? part.high : total.high;
    total.sum += part.sum;
}

// How a level is found from a summary.
enum : int32_t {
    kStretch = 0,   // lowest to black, highest to white
    kContrast = 1,  // blend with the mean: factor 0 is all mean, 1 the image
};

CVCLI_FN Level level_of(int32_t kind, const Summary& total, double factor, double top,
                        double samples, bool floats) {
    if (kind == kContrast) {
        const double unit = floats ? kSumUnit : 1.0;
        return {factor, (1.0 - factor) * (static_cast<double>(total.sum) / unit / samples)};
    }
    const double low = total.low, high = total.high;
    if (!(high > low)) return {1.0, 0.0};
    const double scale = top / (high - low);
    return {scale, -low * scale};
}

// A stretched integer is cut off, as Pillow does; a blended one is rounded.
template <class T>
CVCLI_FN T leveled(int32_t kind, T value, const Level& level) {
    const double top = static_cast<double>(kWhite<T>);
    const double result = static_cast<double>(value) * level.scale + level.offset;
    if (kind == kContrast) {
        return static_cast<T>(static_cast<int32_t>(round_sample(result, top)));
    }
    const double clamped = result > 0.0 ? (result < top ? result : top) : 0.0;
    return static_cast<T>(static_cast<int32_t>(clamped));
}

template <>
CVCLI_FN float leveled<float>(int32_t, float value, const Level& level) {
    const double result = static_cast<double>(value) * level.scale + level.offset;
    const double clamped = result < 0.0 ? 0.0 : result > 1.0 ? 1.0 : result;
    return canonical(static_cast<float>(clamped));
}

// How a table is found from a histogram.
enum : int32_t {
    kEqualize = 0,
    kOtsu = 1,
    kTriangle = 2,
};

// Rounds a product of a table, which lies between 0 and 255.
CVCLI_FN uint8_t table_entry(float value) {
    return to_sample<uint8_t>(value);
}

// OpenCV's equalizeHist.
CVCLI_FN void equalize_table(const uint32_t* counts, uint32_t samples, uint8_t* table) {
    int first = 0;
    while (first < kLevels - 1 && !counts[first]) ++first;
    for (int i = 0; i <= first; ++i) table[i] = 0;
    if (counts[first] == samples) {
        for (int i = first; i < kLevels; ++i) table[i] = static_cast<uint8_t>(first);
        return;
    }
    const float scale = 255.0f / static_cast<float>(samples - counts[first]);
    uint32_t sum = 0;
    for (int i = first + 1; i < kLevels; ++i) {
        sum += counts[i];
        table[i] = table_entry(static_cast<float>(sum) * scale);
    }
}

// Otsu, "A threshold selection method from gray-level histograms" (1979), as OpenCV computes it:
// the level that sets two classes furthest apart.
CVCLI_FN int otsu_level(const uint32_t* counts, double samples) {
    const double scale = 1.0 / samples;
    const double least = 1.1920928955078125e-07;
    double mean = 0.0;
    for (int i = 0; i < kLevels; ++i) mean += i * static_cast<double>(counts[i]);
    mean *= scale;
    double below = 0.0, share = 0.0, best = 0.0;
    int level = 0;
    for (int i = 0; i < kLevels; ++i) {
        const double part = counts[i] * scale;
        below *= share;
        share += part;
        const double rest = 1.0 - share;
        if (smaller(share, rest) < least || larger(share, rest) > 1.0 - least) continue;
        below = (below + i * part) / share;
        const double above = (mean - share * below) / rest;
        const double apart = share * rest * (below - above) * (below - above);
        if (apart > best) {
            best = apart;
            level = i;
        }
    }
    return level;
}

CVCLI_FN uint32_t count_at(const uint32_t* counts, int index, bool flipped) {
    return counts[flipped ? kLevels - 1 - index : index];
}

// Zack, Rogers and Latt (1977), as OpenCV computes it: the level furthest from the line between
// the histogram's peak and its far end.
CVCLI_FN int triangle_level(const uint32_t* counts) {
    int left = 0, right = kLevels - 1, peak = 0;
    while (left < kLevels - 1 && !counts[left]) ++left;
    if (left > 0) --left;
    while (right > 0 && !counts[right]) --right;
    if (right < kLevels - 1) ++right;
    for (int i = 1; i < kLevels; ++i) {
        if (counts[i] > counts[peak]) peak = i;
    }
    const bool flipped = peak - left < right - peak;
    if (flipped) {
        left = kLevels - 1 - right;
        peak = kLevels - 1 - peak;
    }
    const double rise = count_at(counts, peak, flipped);
    const double run = left - peak;
    double furthest = 0.0;
    int level = left;
    for (int i = left + 1; i <= peak; ++i) {
        const double distance = rise * i + run * count_at(counts, i, flipped);
        if (distance > furthest) {
            furthest = distance;
            level = i;
        }
    }
    --level;
    return flipped ? kLevels - 1 - level : level;
}

}  // namespace cvcli
