// From the parts of an image's histograms or summaries to what each channel is mapped by: a table
// of 256 values for uint8, a level for other dtypes.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct TablesParams {
    Frame frame;          // its height is the number of parts
    int64_t samples;      // of one channel
    double factor;        // of kContrast
    double top;           // white
    float values[4];      // thresholds: what becomes of samples not above and above; below 0: the
                          // sample itself, 256: the threshold
    int32_t from_counts;  // whether the parts are histograms
    int32_t kind;
    int32_t measured;  // channels of the statistics
    int32_t channels;  // of the image
    int32_t levels;    // whether levels are made instead of tables
    int32_t floats;    // whether the image has float samples
};

CVCLI_FN uint8_t threshold_entry(const TablesParams& params, int level, int value) {
    const float chosen = params.values[value > level];
    if (chosen < 0.0f) return static_cast<uint8_t>(value);
    return static_cast<uint8_t>(chosen > 255.0f ? level : static_cast<int>(chosen));
}

CVCLI_FN void table_from_counts(const TablesParams& params, const uint32_t* counts,
                                uint8_t* table) {
    if (params.kind == kEqualize) {
        return equalize_table(counts, static_cast<uint32_t>(params.samples), table);
    }
    const int level = params.kind == kOtsu ? otsu_level(counts, static_cast<double>(params.samples))
                                           : triangle_level(counts);
    for (int i = 0; i < kLevels; ++i) table[i] = threshold_entry(params, level, i);
}

CVCLI_FN bool is_alpha_of(const TablesParams& params, int channel) {
    return params.channels % 2 == 0 && channel == params.channels - 1;
}

CVCLI_FN Level level_from(const TablesParams& params, const Image& src, int channel) {
    if (is_alpha_of(params, channel)) return {1.0, 0.0};
    const int measured = params.measured == 1 ? 0 : channel;
    Summary total = no_samples();
    for (int32_t part = 0; part < params.frame.height; ++part) {
        add_summary(total, row_at<const Summary>(src, part)[measured]);
    }
    return level_of(params.kind, total, params.factor, params.top,
                    static_cast<double>(params.samples), params.floats);
}

CVCLI_FN void identity_table(uint8_t* table) {
    for (int i = 0; i < kLevels; ++i) table[i] = static_cast<uint8_t>(i);
}

CVCLI_FN void level_table(const TablesParams& params, const Level& level, bool alpha,
                          uint8_t* table) {
    if (alpha) return identity_table(table);
    for (int i = 0; i < kLevels; ++i) {
        table[i] = leveled<uint8_t>(params.kind, static_cast<uint8_t>(i), level);
    }
}

#if CVCLI_CUDA

// A block an image: all threads add the parts up, then one a channel does the rest.
template <class W>
CVCLI_FN void tables(const W& work, const Each<TablesParams>& each) {
    __shared__ uint32_t counts[4][kLevels];
    __shared__ uint8_t made[4][kLevels];
    uint32_t* const flat = &counts[0][0];
    const uint8_t* const table = &made[0][0];
    const int channel = threadIdx.x;
    for (int32_t index = blockIdx.z; index < work.args.count; index += gridDim.z) {
        const Image src = work.src(index);
        const Image dst = work.dst(index);
        const TablesParams& params = work.params(each, index);
        if (params.from_counts) {
            for (int i = threadIdx.x; i < params.measured * kLevels; i += kBlockThreads) {
                uint32_t total = 0;
#pragma unroll 8
                for (int32_t part = 0; part < params.frame.height; ++part) {
                    total += row_at<const uint32_t>(src, part)[i];
                }
                flat[i] = total;
            }
        }
        __syncthreads();
        if (channel < params.channels) {
            if (params.from_counts && !is_alpha_of(params, channel)) {
                table_from_counts(params, counts[params.measured == 1 ? 0 : channel],
                                  made[channel]);
            } else if (params.from_counts) {
                identity_table(made[channel]);
            } else {
                const Level level = level_from(params, src, channel);
                if (params.levels)
                    row_at<Level>(dst, 0)[channel] = level;
                else
                    level_table(params, level, is_alpha_of(params, channel), made[channel]);
            }
        }
        __syncthreads();
        if (!params.levels) {
            for (int i = threadIdx.x; i < params.channels * kLevels; i += kBlockThreads) {
                row_at<uint8_t>(dst, i / kLevels)[i % kLevels] = table[i];
            }
        }
        __syncthreads();
    }
}

#else

template <class T, int C>
int32_t tables_rows(const Share<TablesParams>& share) {
    const TablesParams& params = share.params;
    for (int channel = 0; channel < params.channels; ++channel) {
        if (!params.from_counts) {
            const Level level = level_from(params, share.src, channel);
            if (params.levels) {
                row_at<Level>(share.dst, 0)[channel] = level;
            } else {
                level_table(params, level, is_alpha_of(params, channel),
                            row_at<uint8_t>(share.dst, channel));
            }
            continue;
        }
        uint8_t* table = row_at<uint8_t>(share.dst, channel);
        if (is_alpha_of(params, channel)) {
            identity_table(table);
            continue;
        }
        uint32_t counts[kLevels] = {};
        const int measured = params.measured == 1 ? 0 : channel;
        for (int32_t part = 0; part < params.frame.height; ++part) {
            const uint32_t* row = row_at<const uint32_t>(share.src, part) + measured * kLevels;
            for (int i = 0; i < kLevels; ++i) counts[i] += row[i];
        }
        table_from_counts(params, counts, table);
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(tables, TablesParams)
