// Medians on the CPU by the order of all samples of a tile: it is cut into groups, and of each
// window it is known how many samples it has of each group, and of each row and column which
// entries of the order lie near enough. The work is the same for any content.
#pragma once

#include "core/median_net.h"
#include "core/rows_cpu.h"
#include "core/simd_cpu.h"

namespace cvcli {

constexpr int kTileSide = 64, kTileItems = kTileSide * kTileSide;
constexpr int kTileGroups = 16, kTileWords = kTileItems / 64;

inline int bits_in(uint64_t set) {
#if defined(__GNUC__)
    return __builtin_popcountll(set);
#else
    set -= set >> 1 & 0x5555555555555555u;
    set = (set & 0x3333333333333333u) + (set >> 2 & 0x3333333333333333u);
    set = (set + (set >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<int>(set * 0x0101010101010101u >> 56);
#endif
}

// Where the n-th bit of those set is; there are more than n.
inline int nth_bit(uint64_t set, int n) {
#if CVCLI_SIMD > 0
    set = _pdep_u64(uint64_t{1} << n, set);
#else
    while (n-- > 0) set &= set - 1;
#endif
    return bits_in((set & (0 - set)) - 1);
}

// A key and, below it, the place it has come from.
template <class K>
struct TileItemOf {
    using type = uint32_t;
};
template <>
struct TileItemOf<uint32_t> {
    using type = uint64_t;
};

// Which part of a row of keys, of `width` pixels from `first` on, `apart` samples from each to the
// next.
struct TilePart {
    int64_t first;
    int32_t apart;
    int32_t width;
    int32_t height;
};

template <class K>
class RankTile {
    using Item = typename TileItemOf<K>::type;
    static constexpr int kPlaceBits = 12;
    struct Line {
        uint64_t words[kTileWords];
    };
    struct Counts {
        uint16_t up_to[kTileGroups];
    };

  public:
    RankTile(Scratch& scratch, int32_t size)
        : size_(size),
          items_(scratch.take<Item>(kTileItems)),
          others_(scratch.take<Item>(kTileItems)),
          keys_(scratch.take<K>(kTileItems)),
          groups_(scratch.take<uint8_t>(kTileItems)),
          columns_(scratch.take<Line>(kTileSide)),
          rows_(scratch.take<Line>(kTileSide)),
          counts_(scratch.take<Counts>(kTileSide)),
          sums_(scratch.take<Counts>(kTileSide + 1)) {
        for (int g = 0; g < kTileGroups; ++g) {
            for (int i = 0; i < kTileGroups; ++i) ones_[g].up_to[i] = g <= i;
        }
    }
    // `keys` are rows of those around the results: take(y, x, key) gets each median.
    template <class Take>
    void run(const K* const* keys, const TilePart& part, const Take& take) {
        part_ = part;
        load(keys);
        sort();
        spread();
        join(columns_, part_.width);
        join(rows_, part_.height);
        std::memset(static_cast<void*>(counts_), 0, sizeof(Counts) * kTileSide);
        for (int y = 0; y < size_ - 1; ++y) count_row(y);
        for (int y = 0; y + size_ <= part_.height; ++y) {
            add_row(y);
            for (int x = 0; x + size_ <= part_.width; ++x) take(y, x, median(y, x));
        }
    }

  private:
    int32_t count() const { return part_.width * part_.height; }
    void load(const K* const* keys) {
        Item* to = items_;
        for (int y = 0; y < part_.height; ++y) {
            const K* from = keys[y] + part_.first;
            for (int x = 0; x < part_.width; ++x, from += part_.apart) {
                *to++ = Item{*from} << kPlaceBits | static_cast<Item>(y * kTileSide + x);
            }
        }
    }
    // By bytes of the keys, the lowest first.
    void sort() {
        constexpr int bytes = sizeof(K);
        uint32_t starts[bytes][256] = {};
        for (int32_t i = 0; i < count(); ++i) {
            for (int b = 0; b < bytes; ++b) ++starts[b][digit(items_[i], b)];
        }
        for (int b = 0; b < bytes; ++b) {
            uint32_t start = 0;
            for (uint32_t& entry : starts[b]) {
                const uint32_t many = entry;
                entry = start;
                start += many;
            }
            for (int32_t i = 0; i < count(); ++i) {
                others_[starts[b][digit(items_[i], b)]++] = items_[i];
            }
            Item* sorted = others_;
            others_ = items_;
            items_ = sorted;
        }
    }
    static uint32_t digit(Item item, int b) { return item >> (kPlaceBits + 8 * b) & 255u; }
    // Entries of the order to where they have come from.
    void spread() {
        std::memset(static_cast<void*>(columns_), 0, sizeof(Line) * part_.width);
        std::memset(static_cast<void*>(rows_), 0, sizeof(Line) * part_.height);
        for (int32_t i = 0; i < count(); ++i) {
            const uint32_t place = items_[i] & (kTileItems - 1);
            const uint64_t bit = uint64_t{1} << i % 64;
            columns_[place % kTileSide].words[i / 64] |= bit;
            rows_[place / kTileSide].words[i / 64] |= bit;
            groups_[place] = static_cast<uint8_t>(i / (kTileItems / kTileGroups));
            keys_[i] = static_cast<K>(items_[i] >> kPlaceBits);
        }
    }
    // From what each line has to what `size` of them have, from each on.
    void join(Line* lines, int32_t many) const {
        Line joined = {};
        for (int k = 0; k < size_; ++k) {
            for (int i = 0; i < kTileWords; ++i) joined.words[i] |= lines[k].words[i];
        }
        for (int k = 0; k + size_ < many; ++k) {
            const Line gone = lines[k], next = lines[k + size_];
            lines[k] = joined;
            for (int i = 0; i < kTileWords; ++i) joined.words[i] ^= gone.words[i] ^ next.words[i];
        }
        lines[many - size_] = joined;
    }
    // Rows of windows from row y on, and sums of those from the left edge to each column.
    void add_row(int y) {
        const uint8_t* more = groups_ + (y + size_ - 1) * kTileSide;
        const uint8_t* less = groups_ + (y - 1) * kTileSide;
        Counts sum = {};
        sums_[0] = sum;
        for (int x = 0; x < part_.width; ++x) {
            Counts& counts = counts_[x];
            const Counts& one = ones_[more[x]];
            const Counts& gone = y ? ones_[less[x]] : none_;
            for (int i = 0; i < kTileGroups; ++i) {
                counts.up_to[i] =
                    static_cast<uint16_t>(counts.up_to[i] + one.up_to[i] - gone.up_to[i]);
                sum.up_to[i] = static_cast<uint16_t>(sum.up_to[i] + counts.up_to[i]);
            }
            sums_[x + 1] = sum;
        }
    }
    void count_row(int y) {
        const uint8_t* groups = groups_ + y * kTileSide;
        for (int x = 0; x < part_.width; ++x) {
            for (int i = 0; i < kTileGroups; ++i) {
                counts_[x].up_to[i] =
                    static_cast<uint16_t>(counts_[x].up_to[i] + ones_[groups[x]].up_to[i]);
            }
        }
    }
    K median(int y, int x) const {
        const int rank = size_ * size_ / 2;
        uint16_t up_to[kTileGroups + 1] = {}, below[kTileGroups];
        for (int i = 0; i < kTileGroups; ++i) {
            up_to[i + 1] = static_cast<uint16_t>(sums_[x + size_].up_to[i] - sums_[x].up_to[i]);
            below[i] = up_to[i + 1] <= rank;
        }
        uint16_t group = 0;
        for (int i = 0; i < kTileGroups; ++i) group = static_cast<uint16_t>(group + below[i]);
        constexpr int words = kTileWords / kTileGroups;
        const uint64_t* column = columns_[x].words + group * words;
        const uint64_t* row = rows_[y].words + group * words;
        int left = rank - up_to[group], word = 0;
        uint64_t set = column[0] & row[0];
        for (int many = bits_in(set); many <= left; many = bits_in(set)) {
            left -= many;
            ++word;
            set = column[word] & row[word];
        }
        return keys_[(group * words + word) * 64 + nth_bit(set, left)];
    }
    int32_t size_;
    TilePart part_ = {};
    Item* items_;
    Item* others_;
    K* keys_;
    uint8_t* groups_;
    Line* columns_;
    Line* rows_;
    Counts* counts_;
    Counts* sums_;
    Counts ones_[kTileGroups];
    Counts none_ = {};
};

}  // namespace cvcli
