// How a tile's 8-bit source gets into shared memory: by words from the image, channel by channel.
#pragma once

#include "core/work_cuda.h"

namespace cvcli {

// One image's tile: where it begins in the result and in the source, and how much of it there is.
struct SourceTile {
    int32_t x, y, width, height;
    int32_t source_x, source_y, end_x, end_y;
};

// Four pixels as they lie, into one word a channel.
CVCLI_FN void split_channels(uint32_t (&)[1]) {}

CVCLI_FN void split_channels(uint32_t (&w)[2]) {
    const uint32_t first = __byte_perm(w[0], w[1], 0x6420);
    w[1] = __byte_perm(w[0], w[1], 0x7531);
    w[0] = first;
}

CVCLI_FN void split_channels(uint32_t (&w)[3]) {
    const uint32_t a = __byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210);
    const uint32_t b = __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210);
    const uint32_t c = __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], 0x7410);
    w[0] = a;
    w[1] = b;
    w[2] = c;
}

CVCLI_FN void split_channels(uint32_t (&w)[4]) {
    const uint32_t a = __byte_perm(w[0], w[1], 0x5140);
    const uint32_t b = __byte_perm(w[2], w[3], 0x5140);
    const uint32_t c = __byte_perm(w[0], w[1], 0x7362);
    const uint32_t d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410);
    w[3] = __byte_perm(c, d, 0x7632);
}

// Four pixels from byte `offset` of a row on; nothing outside the row is read.
template <int C>
CVCLI_FN void load_words(const uint8_t* row, int32_t row_bytes, int32_t offset,
                         uint32_t (&words)[C]) {
    const int32_t lead = static_cast<int32_t>(address(row + offset) & 3);
    const uint32_t* from = reinterpret_cast<const uint32_t*>(row + offset - lead);
    if (lead == 0 && offset + 4 * C <= row_bytes) {
#pragma unroll
        for (int i = 0; i < C; ++i) words[i] = read_only(from + i);
    } else if (offset >= lead && offset - lead + 4 * C + 4 <= row_bytes) {
        uint32_t low = read_only(from);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            const uint32_t high = read_only(from + i + 1);
            words[i] = __funnelshift_r(low, high, 8 * lead);
            low = high;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 4 * C; ++i) {
            const uint32_t byte = offset + i < row_bytes ? read_only(row + offset + i) : 0;
#pragma unroll
            for (int k = 0; k < C; ++k) {
                if (k == i / 4) words[k] = (i % 4 ? words[k] : 0) | byte << (8 * (i % 4));
            }
        }
    }
}

// Pixels x to x + 3 of row y of what a pattern reads, before the steps, as words that lie where
// they are; false where a gather takes them from several places.
template <int C, class R>
CVCLI_FN bool load_raw_four(const R& reader, int32_t width, int32_t y, int32_t x, bool& forward,
                            uint32_t (&words)[C]) {
    forward = true;
    if constexpr (R::kMoved) {
        const Axis& axis = reader.move.x;
        y = axis_at(reader.move.y, y);
        if (y < 0 || x < axis.run_begin || x + 4 > axis.run_end) return false;
        forward = axis.run_step > 0;
        x = run_at(axis, forward ? x : x + 3);
        width = reader.src.width;
    }
    load_words(row_at<const uint8_t>(reader.src, y), width * C, x * C, words);
    return true;
}

// The pixel at place i of four as they lie.
template <int C>
CVCLI_FN Pixel<uint8_t, C> pixel_of(const uint32_t (&words)[C], int i) {
    Pixel<uint8_t, C> pixel;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const int byte = i * C + c;
        pixel.v[c] = static_cast<uint8_t>(words[byte / 4] >> (8 * (byte % 4)));
    }
    return pixel;
}

// Pixels x to x + 3 of row y of what a pattern reads, one word a channel.
template <int C, class R>
CVCLI_FN void load_four(const R& reader, int32_t width, int32_t y, int32_t x,
                        uint32_t (&words)[C]) {
    using Raw = typename R::Raw;
    constexpr bool raw_bytes = R::kPacked && sizeof(typename Raw::Sample) == 1;
    bool forward = true;
    if constexpr (raw_bytes && !R::kSteps) {
        if (load_raw_four(reader, width, y, x, forward, words)) {
            split_channels(words);
#pragma unroll
            for (int c = 0; c < C; ++c) {
                if (!forward) words[c] = __byte_perm(words[c], 0, 0x0123);
            }
            return;
        }
    }
    bool loaded = false;
    uint32_t raw[Raw::kChannels] = {};
    if constexpr (raw_bytes && R::kSteps) {
        loaded = load_raw_four(reader, width, y, x, forward, raw);
    }
#pragma unroll
    for (int c = 0; c < C; ++c) words[c] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (x + i >= width) return;
        Pixel<uint8_t, C> pixel;
        if constexpr (raw_bytes && R::kSteps) {
            const Raw ahead = pixel_of(raw, i), behind = pixel_of(raw, 3 - i);
            pixel = loaded ? reader.before(forward ? ahead : behind) : reader.at(y, x + i);
        } else {
            pixel = reader.at(y, x + i);
        }
#pragma unroll
        for (int c = 0; c < C; ++c) words[c] |= uint32_t{pixel.v[c]} << (8 * i);
    }
}

// What number / span is without a division: (number * inverse) >> 26. For what fits shared memory
// number < 32 * span, so that it stays in 32 bits, and number * span < 2^26, so that it is exact.
CVCLI_FN uint32_t inverse_of(int32_t span) {
    return static_cast<uint32_t>(((1 << 26) + span - 1) / span);
}

// Four pixels on their way from the image into shared memory, or several where steps come before.
template <int C, class R, bool Shifted>
struct WholeGroup {
    static constexpr int kRaw = R::Raw::kChannels;
    static constexpr int kLoaded = Shifted ? kRaw + 1 : kRaw;
    uint32_t words[kLoaded];
    int shift;
    uint32_t* to;

    CVCLI_FN void load(const uint8_t* at) {
        const int lead = Shifted ? static_cast<int>(address(at) & 3) : 0;
        const auto* from = reinterpret_cast<const uint32_t*>(at - lead);
#pragma unroll
        for (int c = 0; c < kLoaded; ++c) words[c] = read_only(from + c);
        shift = 8 * lead;
    }
    // Keeps compilers from loading only where it is stored.
    CVCLI_FN void is_loaded() {
#pragma unroll
        for (int c = 0; c < kLoaded; ++c) asm volatile("" : "+r"(words[c]));
    }
    CVCLI_FN void store(const R& reader, bool backwards, int span) const {
        uint32_t raw[kRaw], four[C] = {};
#pragma unroll
        for (int c = 0; c < kRaw; ++c) {
            raw[c] =
                Shifted ? __funnelshift_r(words[c], words[kLoaded - kRaw + c], shift) : words[c];
        }
        if constexpr (R::kSteps) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const Pixel<uint8_t, C> pixel = reader.before(pixel_of(raw, i));
#pragma unroll
                for (int c = 0; c < C; ++c) four[c] |= uint32_t{pixel.v[c]} << (8 * i);
            }
        } else {
            split_channels(raw);
#pragma unroll
            for (int c = 0; c < C; ++c) four[c] = raw[c];
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            to[c * span] = R::kMoved && backwards ? __byte_perm(four[c], 0, 0x0123) : four[c];
        }
    }
};

CVCLI_FN int floor_quotient(int a, int b) {
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// The fours of pixels of some source rows that one tile needs.
template <int C, class R>
struct BatchLoad {
    const R& reader;
    uint32_t* raw;
    const SourceTile& place;
    int32_t width;
    int32_t first_row;
    int32_t span;
    int32_t pad;  // words between fours of rows
    int32_t batch;
    uint32_t inverse;

    // Calls each(row, group) for all of them, so many of a thread's at a time.
    template <int Unroll, class Function>
    CVCLI_FN void for_each(const Function& each) const {
        const int groups = (place.end_x - place.source_x + 3) / 4;
#pragma unroll Unroll
        for (int i = threadIdx.x; i < batch * 4 * span; i += kBlockThreads) {
            const int row = static_cast<int>((static_cast<uint32_t>(i) * inverse) >> 26);
            const int group = i - row * span;
            if (group < groups && first_row + row < place.end_y) each(row, group);
        }
    }
    CVCLI_FN void store(int row, int group, const uint32_t (&words)[C]) const {
#pragma unroll
        for (int c = 0; c < C; ++c) raw[(row * C + c) * span + row / 4 * pad + group] = words[c];
    }
    CVCLI_FN void load_any(int row, int group) const {
        uint32_t words[C];
        load_four(reader, width, first_row + row, place.source_x + 4 * group, words);
        store(row, group, words);
    }
    // Rows by words; what these would leave the row for, or a gather takes from elsewhere, pixel by
    // pixel.
    template <bool Shifted>
    CVCLI_FN void load_rows() const {
        constexpr int raw = R::Raw::kChannels, more = Shifted ? 4 : 0, unit = 4 * raw;
        const int groups = (place.end_x - place.source_x + 3) / 4;
        const int rows = smaller(batch * 4, place.end_y - first_row);
        int32_t x = place.source_x, y = first_row;
        int64_t pitch = reader.src.row_pitch;
        int first = 0, last = groups - 1;
        bool backwards = false;
        if constexpr (R::kMoved) {
            const Axis &across = reader.move.x, &down = reader.move.y;
            const bool straight = y >= down.run_begin && y + rows <= down.run_end;
            first = larger(0, -floor_quotient(x - across.run_begin, 4));
            last = straight ? smaller(last, floor_quotient(across.run_end - x, 4) - 1) : -1;
            backwards = across.run_step < 0;
            x = run_at(across, x) - (backwards ? 3 : 0);
            y = run_at(down, y);
            pitch *= down.run_step;
        }
        // Offsets of groups in a row must lie between these.
        const int low = Shifted ? 3 : 0;
        const int high = (R::kMoved ? reader.src.width : width) * raw - unit - more;
        const int begin = backwards ? x * raw - high : low - x * raw;
        const int end = backwards ? x * raw - low : high - x * raw;
        first = larger(first, -floor_quotient(-begin, unit));
        last = smaller(last, floor_quotient(end, unit));
        if (first <= last) {
            const auto* row = row_at<const uint8_t>(reader.src, y);
            load_whole<Shifted>(row + int64_t{x} * raw, pitch, backwards ? -unit : unit, first,
                                last);
        }
        if (first == 0 && last == groups - 1) return;
        for_each<1>([&](int row, int group) {
            if (group < first || group > last) load_any(row, group);
        });
    }
    // Groups from `first` to `last`, three of a thread's at a time, all loads before the stores. In
    // the place of others the nearest of these are loaded, so that nothing is left to chance.
    template <bool Shifted>
    CVCLI_FN void load_whole(const uint8_t* from, uint64_t pitch, int stride, int first,
                             int last) const {
        constexpr int round = 3;
        const int total = batch * 4 * span;
        const uint32_t last_row = smaller(batch * 4, place.end_y - first_row) - 1;
        const uint32_t step_rows = (kBlockThreads * inverse) >> 26;
        const int step = kBlockThreads - step_rows * span;
        uint32_t row = (threadIdx.x * inverse) >> 26;
        int group = threadIdx.x - row * span;
        const auto load = [&](WholeGroup<C, R, Shifted>& next) {
            next.load(from + smaller(row, last_row) * pitch +
                      larger(smaller(group, last), first) * stride);
            next.to = raw + row * (C * span) + row / 4 * pad + group;
            row += step_rows;
            group += step;
            row += group >= span ? 1 : 0;
            group -= group >= span ? span : 0;
        };
#pragma unroll 1
        for (int i = threadIdx.x; i < total; i += round * kBlockThreads) {
            WholeGroup<C, R, Shifted> groups[round];
#pragma unroll
            for (int n = 0; n < round; ++n) load(groups[n]);
#pragma unroll
            for (int n = 0; n < round; ++n) groups[n].is_loaded();
#pragma unroll
            for (int n = 0; n < round; ++n) {
                if (i + n * kBlockThreads < total) groups[n].store(reader, stride < 0, span);
            }
        }
    }
    CVCLI_FN void operator()() const {
        if constexpr (R::kPacked && sizeof(typename R::Raw::Sample) == 1) {
            const uint64_t places = address(reader.src.data) | reader.src.row_pitch;
            // With a gather groups of pixels may begin anywhere.
            const bool fours = !R::kMoved || R::Raw::kChannels % 4 == 0;
            places & 3 || !fours ? load_rows<true>() : load_rows<false>();
        } else {
            for_each<2>([&](int row, int group) { load_any(row, group); });
        }
    }
};

}  // namespace cvcli
