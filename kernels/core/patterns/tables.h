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

// The summary of every `step`-th part from `first` on.
CVCLI_FN Summary summary_of_parts(const TablesParams& params, const Image& src, int measured,
                                  int first, int step) {
    Summary total = no_samples();
    for (int32_t part = first; part < params.frame.height; part += step) {
        add_summary(total, row_at<const Summary>(src, part)[measured]);
    }
    return total;
}

CVCLI_FN Level level_from(const TablesParams& params, const Summary& total, int channel) {
    if (is_alpha_of(params, channel)) return {1.0, 0.0};
    return level_of(params.kind, total, params.factor, params.top,
                    static_cast<double>(params.samples), params.floats);
}

CVCLI_FN void identity_table(uint8_t* table) {
    for (int i = 0; i < kLevels; ++i) table[i] = static_cast<uint8_t>(i);
}

CVCLI_FN uint8_t level_entry(const TablesParams& params, const Level& level, int channel,
                             int value) {
    if (is_alpha_of(params, channel)) return static_cast<uint8_t>(value);
    return leveled<uint8_t>(params.kind, static_cast<uint8_t>(value), level);
}

#if CVCLI_CUDA

// Sixteen threads a channel add the parts up, then the first of each has the level.
CVCLI_FN void make_levels(const TablesParams& params, const Image& src, Level* levels) {
    __shared__ Summary parts[4][16];
    const int channel = threadIdx.x / 16, lane = threadIdx.x % 16;
    const bool mine = channel < params.channels;
    const int measured = params.measured == 1 ? 0 : channel;
    if (mine && !is_alpha_of(params, channel)) {
        parts[channel][lane] = summary_of_parts(params, src, measured, lane, 16);
    }
    __syncthreads();
    if (mine && lane == 0) {
        Summary total = no_samples();
        if (!is_alpha_of(params, channel)) {
            for (int i = 0; i < 16; ++i) add_summary(total, parts[channel][i]);
        }
        levels[channel] = level_from(params, total, channel);
    }
    __syncthreads();
}

CVCLI_FN void add_counts(const TablesParams& params, const Image& src, uint32_t* counts) {
    for (int i = threadIdx.x; i < params.measured * kLevels; i += kBlockThreads) {
        uint32_t total = 0;
#pragma unroll 16
        for (int32_t part = 0; part < params.frame.height; ++part) {
            total += row_at<const uint32_t>(src, part)[i];
        }
        counts[i] = total;
    }
    __syncthreads();
}

// equalize_table by a whole block, a thread a value.
CVCLI_FN void equalize_values(const uint32_t* counts, uint32_t samples, uint8_t* table) {
    __shared__ uint32_t sums[kBlockWarps];
    __shared__ int firsts[kBlockWarps];
    static_assert(kBlockThreads == kLevels, "a thread has a value");
    const int value = threadIdx.x, warp = value / kWarp;
    const uint32_t own = counts[value];
    uint32_t sum = own;
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const uint32_t before = __shfl_up_sync(~0u, sum, distance);
        if (lane() >= distance) sum += before;
    }
    const uint32_t some = __ballot_sync(~0u, own != 0);
    if (lane() == kWarp - 1) {
        sums[warp] = sum;
        firsts[warp] = some ? warp * kWarp + __ffs(static_cast<int>(some)) - 1 : kLevels - 1;
    }
    __syncthreads();
    int first = kLevels - 1;
#pragma unroll
    for (int w = 0; w < kBlockWarps; ++w) {
        if (w < warp) sum += sums[w];
        first = smaller(first, firsts[w]);
    }
    const uint32_t lowest = counts[first];
    if (lowest == samples) {
        table[value] = static_cast<uint8_t>(value < first ? 0 : first);
    } else {
        const float scale = 255.0f / static_cast<float>(samples - lowest);
        table[value] =
            value <= first ? uint8_t{0} : table_entry(static_cast<float>(sum - lowest) * scale);
    }
    __syncthreads();
}

// A block an image.
template <class W>
CVCLI_FN void tables(const W& work, const Each<TablesParams>& each) {
    __shared__ uint32_t counts[4][kLevels];
    __shared__ uint8_t made[4][kLevels];
    __shared__ Level levels[4];
    uint8_t* const table = &made[0][0];
    const int channel = threadIdx.x;
    for (int32_t index = blockIdx.z; index < work.args.count; index += gridDim.z) {
        const Image src = work.src(index);
        const Image dst = work.dst(index);
        const TablesParams& params = work.params(each, index);
        if (params.from_counts) {
            add_counts(params, src, &counts[0][0]);
            if (params.kind == kEqualize) {
#pragma unroll 1
                for (int c = 0; c < params.channels; ++c) {
                    if (is_alpha_of(params, c)) {
                        made[c][threadIdx.x] = static_cast<uint8_t>(threadIdx.x);
                    } else {
                        equalize_values(counts[params.measured == 1 ? 0 : c],
                                        static_cast<uint32_t>(params.samples), made[c]);
                    }
                }
            } else if (channel < params.channels) {
                if (is_alpha_of(params, channel))
                    identity_table(made[channel]);
                else
                    table_from_counts(params, counts[params.measured == 1 ? 0 : channel],
                                      made[channel]);
            }
        } else {
            make_levels(params, src, levels);
            for (int i = threadIdx.x; i < params.channels * kLevels; i += kBlockThreads) {
                table[i] = level_entry(params, levels[i / kLevels], i / kLevels, i % kLevels);
            }
        }
        __syncthreads();
        if (params.levels) {
            if (channel < params.channels) row_at<Level>(dst, 0)[channel] = levels[channel];
        } else {
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
            const int measured = params.measured == 1 || is_alpha_of(params, channel) ? 0 : channel;
            const Summary total = summary_of_parts(params, share.src, measured, 0, 1);
            const Level level = level_from(params, total, channel);
            if (params.levels) {
                row_at<Level>(share.dst, 0)[channel] = level;
                continue;
            }
            uint8_t* table = row_at<uint8_t>(share.dst, channel);
            for (int i = 0; i < kLevels; ++i) table[i] = level_entry(params, level, channel, i);
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
