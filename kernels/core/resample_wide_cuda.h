// How a wide tile's 8-bit source gets into shared memory: sixteen pixels at once, by 16-byte loads.
#pragma once

#include "core/resample_load_cuda.h"

namespace cvcli {

template <int C, class R>
struct WideLoad {
    static constexpr int kRaw = R::Raw::kChannels, kPixels = 16, kTogether = 2;
    const R& reader;
    uint32_t* raw;
    const SourceTile& place;
    int32_t width;
    int32_t first_row;
    int32_t span;
    int32_t pad;
    int32_t batch;

    // False where some of them don't lie whole and aligned in a row, and nothing is loaded.
    CVCLI_FN bool operator()() const {
        const int groups = (place.end_x - place.source_x + kPixels - 1) / kPixels;
        const int rows = smaller(batch * 4, place.end_y - first_row);
        const int32_t end = place.source_x + kPixels * groups;
        int32_t x = place.source_x, y = first_row;
        int64_t pitch = reader.src.row_pitch;
        bool backwards = false;
        if constexpr (R::kMoved) {
            const Axis &across = reader.move.x, &down = reader.move.y;
            if (x < across.run_begin || end > across.run_end) return false;
            if (y < down.run_begin || y + rows > down.run_end) return false;
            backwards = across.run_step < 0;
            x = run_at(across, backwards ? x + kPixels - 1 : x);
            y = run_at(down, y);
            pitch *= down.run_step;
        } else if (end > width) {
            return false;
        }
        const uint8_t* from = row_at<const uint8_t>(reader.src, y) + int64_t{x} * kRaw;
        if ((address(from) | static_cast<uint64_t>(pitch)) & (kChunk - 1)) return false;
        load(from, pitch, groups, rows, backwards);
        return true;
    }

  private:
    CVCLI_FN void load(const uint8_t* from, int64_t pitch, int groups, int rows,
                       bool backwards) const {
        const uint32_t inverse = inverse_of(groups);
        const int total = rows * groups, stride = backwards ? -kPixels * kRaw : kPixels * kRaw;
#pragma unroll 1
        for (int i = threadIdx.x; i < total; i += kTogether * kBlockThreads) {
            uint32_t words[kTogether][4 * kRaw];
            uint32_t* to[kTogether];
#pragma unroll
            for (int n = 0; n < kTogether; ++n) {
                const uint32_t at = smaller(i + n * kBlockThreads, total - 1);
                const int row = static_cast<int>((at * inverse) >> 26);
                const int group = static_cast<int>(at) - row * groups;
                const auto* chunks =
                    reinterpret_cast<const uint4*>(from + row * pitch + group * stride);
#pragma unroll
                for (int k = 0; k < kRaw; ++k) {
                    const uint4 chunk = __ldg(chunks + k);
                    words[n][4 * k] = chunk.x, words[n][4 * k + 1] = chunk.y;
                    words[n][4 * k + 2] = chunk.z, words[n][4 * k + 3] = chunk.w;
                }
                to[n] = raw + row * (C * span) + row / 4 * pad + group * 4;
            }
#pragma unroll
            for (int n = 0; n < kTogether; ++n) {
                if (i + n * kBlockThreads < total) store(to[n], words[n], backwards);
            }
        }
    }
    CVCLI_FN void store(uint32_t* to, const uint32_t (&words)[4 * kRaw], bool backwards) const {
        uint32_t four[4][C] = {};
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            uint32_t own[kRaw];
#pragma unroll
            for (int k = 0; k < kRaw; ++k) own[k] = words[s * kRaw + k];
            if constexpr (R::kSteps) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const Pixel<uint8_t, C> pixel = reader.before(pixel_of(own, i));
#pragma unroll
                    for (int c = 0; c < C; ++c) four[s][c] |= uint32_t{pixel.v[c]} << (8 * i);
                }
            } else {
                split_channels(own);
#pragma unroll
                for (int c = 0; c < C; ++c) four[s][c] = own[c];
            }
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            uint4 chunk = {four[0][c], four[1][c], four[2][c], four[3][c]};
            if (R::kMoved && backwards) {
                chunk = {__byte_perm(four[3][c], 0, 0x0123), __byte_perm(four[2][c], 0, 0x0123),
                         __byte_perm(four[1][c], 0, 0x0123), __byte_perm(four[0][c], 0, 0x0123)};
            }
            *reinterpret_cast<uint4*>(to + c * span) = chunk;
        }
    }
};

}  // namespace cvcli
