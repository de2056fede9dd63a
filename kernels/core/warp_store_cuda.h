// Stores of a warp's 32 neighbouring pixels, row after row.
#pragma once

#include "core/warp_room_cuda.h"

namespace cvcli {

// How pixels of so many bytes are stored: each as a whole, as words that lanes make up together,
// or sample by sample.
enum class Stores { kWhole, kShared, kSamples };

template <class P>
constexpr Stores kStores = sizeof(P) == 1 || (sizeof(P) == 3)   ? Stores::kShared
                           : (sizeof(P) & (sizeof(P) - 1)) == 0 ? Stores::kWhole
                                                                : Stores::kSamples;

template <int Bytes>
struct OneStore;
template <>
struct OneStore<2> {
    using type = uint16_t;
};
template <>
struct OneStore<4> {
    using type = uint32_t;
};
template <>
struct OneStore<8> {
    using type = uint2;
};
template <>
struct OneStore<16> {
    using type = uint4;
};

CVCLI_FN void store_cell(uint16_t* to, const uint32_t* w) {
    *to = static_cast<uint16_t>(w[0]);
}
CVCLI_FN void store_cell(uint32_t* to, const uint32_t* w) {
    *to = w[0];
}
CVCLI_FN void store_cell(uint2* to, const uint32_t* w) {
    *to = {w[0], w[1]};
}
CVCLI_FN void store_cell(uint4* to, const uint32_t* w) {
    *to = {w[0], w[1], w[2], w[3]};
}

// This lane's place in rows of pixels P.
template <class P>
struct Lanes {
    static constexpr Stores kHow = kStores<P>;
    uint8_t* to;
    int64_t pitch;
    uint32_t order;
    bool stores;
    bool fast;

    // From the pixel (y, x) on, so many in a row; lanes past the end of the row store nothing.
    CVCLI_FN Lanes(const Image& dst, int32_t y, int32_t x, int wide, int rows) {
        constexpr int unit = kHow == Stores::kShared ? 4 : sizeof(P);
        uint8_t* row = row_at<uint8_t>(dst, y) + int64_t{x} * sizeof(P);
        const uint64_t skew =
            reinterpret_cast<uint64_t>(row) | static_cast<uint64_t>(dst.row_pitch);
        pitch = dst.row_pitch * rows;
        fast = kHow != Stores::kSamples && skew % unit == 0;
        stores = x + lane() < dst.width;
        if constexpr (kHow == Stores::kShared) {
            const int part = lane() % 4;
            fast = fast && x + wide <= dst.width;
            order = 0x654210 >> part * 4;
            stores = part < int(sizeof(P));
            to = row + (lane() / 4 * sizeof(P) + part) * 4;
        } else {
            to = row + lane() * sizeof(P);
        }
    }
    CVCLI_FN void next() { to += pitch; }
    // Three lanes of four store a word each, of their own and the next lane's; of single bytes the
    // first one does. They are those so many warps further to the right.
    CVCLI_FN void put(const uint32_t* w, int further) const {
        uint8_t* at = to + further * int(kWarp * sizeof(P));
        uint32_t word = w[0];
        if constexpr (sizeof(P) == 3) {
            word = __byte_perm(word, __shfl_down_sync(~0u, word, 1), order);
        }
        if constexpr (sizeof(P) == 1) {
            word |= __shfl_down_sync(~0u, word, 1) << 8;
            word |= __shfl_down_sync(~0u, word, 2) << 16;
        }
        if constexpr (kHow == Stores::kShared) {
            if (stores) *reinterpret_cast<uint32_t*>(at) = word;
        } else if constexpr (kHow == Stores::kWhole) {
            if (stores) store_cell(reinterpret_cast<typename OneStore<sizeof(P)>::type*>(at), w);
        }
    }
};

// Three-byte pixels of a row that starts anywhere and may end within the warp: each lane stores
// the word of memory that is its own, and of the first and the last one only the row's bytes.
CVCLI_FN void put_anywhere(uint8_t* row, int bytes, uint32_t word) {
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(row) & 3);
    const int at = 4 * lane() - skew;
    const int pixel = (at + 3) / 3 - 1;
    const uint32_t first = __shfl_sync(~0u, word, larger(pixel, 0));
    const uint32_t next = __shfl_sync(~0u, word, smaller(pixel + 1, kWarp - 1));
    const int shift = (at - 3 * pixel) * 8;
    const uint32_t own = __funnelshift_r(__byte_perm(first, next, 0x4210), next >> 8, shift);
    if (at >= 0 && at + 4 <= bytes) {
        *reinterpret_cast<uint32_t*>(row + at) = own;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (at + i >= 0 && at + i < bytes) row[at + i] = static_cast<uint8_t>(own >> i * 8);
    }
}

// What the steps after the pattern make of a pixel, as words.
template <class W, class T, int C>
CVCLI_FN auto finished(const W& work, const Cell<T, C>& cell) {
    if constexpr (decltype(work.after)::kNone) {
        return cell;
    } else {
        const auto out = work.after(cell.pixel());
        return Cell<typename decltype(out)::Sample, decltype(out)::kChannels>::of(out);
    }
}

}  // namespace cvcli
