// Medians of a square on the GPU by the order of all samples around: a block puts those that its
// results need in order once, cuts the order into groups, and knows of each window how many it has
// of each group, and of each row and column which entries of the order lie near enough.
#pragma once

#include "core/median_net.h"
#include "core/work_cuda.h"

namespace cvcli {

constexpr int kSquare = 45;  // samples on a side of what a block reads
constexpr int kItems = 2048, kOwnItems = 8, kItemThreads = kItems / kOwnItems;
constexpr int kGroups = 8, kGroupItems = kItems / kGroups;
constexpr int kSetWords = kItems / 32;

// A key and, below it, the place it has come from, so that no two are equal.
template <class K>
struct ItemOf {
    using type = uint32_t;
};
template <>
struct ItemOf<uint32_t> {
    using type = uint64_t;
};
template <class K>
using Item = typename ItemOf<K>::type;

struct SquarePlace {
    static constexpr int kBits = 12, kMask = 63;
    uint32_t bits;
    CVCLI_FN int y() const { return static_cast<int>(bits >> 6 & kMask); }
    CVCLI_FN int x() const { return static_cast<int>(bits & kMask); }
    // A few items come from nowhere, below the last row.
    CVCLI_FN bool inside() const { return y() < kSquare; }
};

template <class I>
CVCLI_FN void order_items(I& a, I& b) {
    const bool swap = b < a;
    const I low = swap ? b : a;
    b = swap ? a : b;
    a = low;
}
CVCLI_FN void order_items(uint32_t& a, uint32_t& b) {
    order(a, b);
}
template <class I>
CVCLI_FN I lower_or_higher(I mine, I other, bool high) {
    return (other < mine) != high ? other : mine;
}
CVCLI_FN uint32_t lower_or_higher(uint32_t mine, uint32_t other, bool high) {
    return high ? higher(mine, other) : lower(mine, other);
}

// Eight a thread, in order through the whole block (Batcher, "Sorting networks and their
// applications", 1968). Where a run is to go down, all its bits are turned over and it goes up.
template <class I>
class ItemSort {
  public:
    // `room` holds all items twice.
    CVCLI_FN explicit ItemSort(I* room) : room_(room) {}
    CVCLI_FN void operator()(I (&v)[kOwnItems]) {
        turn(v, threadIdx.x & 1);
#pragma unroll
        for (int run = 2; run <= kOwnItems; run *= 2) within(v, run / 2, run);
#pragma unroll
        for (int run = 2; run <= kWarp; run *= 2) {
            turn(v, (threadIdx.x & run) != 0);
            finish(v, run / 2);
        }
#pragma unroll 1
        for (int run = 2 * kWarp; run <= kItemThreads; run *= 2) {
            turn(v, (threadIdx.x & run) != 0);
#pragma unroll 1
            for (int apart = run / 2; apart >= kWarp; apart /= 2) across(v, apart);
            finish(v, kWarp / 2);
        }
    }

  private:
    CVCLI_FN void turn(I (&v)[kOwnItems], bool down) {
        const I turned = down ? ~I{0} : I{0}, change = turned ^ turned_;
        turned_ = turned;
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) v[i] ^= change;
    }
    CVCLI_FN static void within(I (&v)[kOwnItems], int first, int run) {
#pragma unroll
        for (int apart = kOwnItems / 2; apart > 0; apart /= 2) {
#pragma unroll
            for (int i = 0; i < kOwnItems; ++i) {
                if (apart > first || i & apart) continue;
                const bool down = (i & run) != 0;
                order_items(v[down ? i + apart : i], v[down ? i : i + apart]);
            }
        }
    }
    // With threads of the same warp, at most so far apart, and what each has itself.
    CVCLI_FN static void finish(I (&v)[kOwnItems], int apart) {
#pragma unroll
        for (; apart > 0; apart /= 2) {
            const bool high = threadIdx.x & apart;
#pragma unroll
            for (int i = 0; i < kOwnItems; ++i) {
                v[i] = lower_or_higher(v[i], __shfl_xor_sync(~0u, v[i], apart), high);
            }
        }
        within(v, kOwnItems / 2, kOwnItems);
    }
    // With threads of other warps; the two halves of the room take turns.
    CVCLI_FN void across(I (&v)[kOwnItems], int apart) {
        const bool high = threadIdx.x & apart;
        I* half = room_ + half_ * kItems;
        half_ ^= 1;
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) half[i * kItemThreads + threadIdx.x] = v[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) {
            const I other = half[i * kItemThreads + (threadIdx.x ^ apart)];
            v[i] = lower_or_higher(v[i], other, high);
        }
    }
    I* room_;
    int half_ = 0;
    I turned_ = 0;
};

// What a block keeps of its square of samples.
template <int size, class T>
class RankSquare {
    using K = Key<T>;
    using I = Item<K>;
    // Counts up to each group, as wide as the number of a window's samples needs.
    static constexpr bool kBytes = size * size < 256;
    static constexpr int kWords = kBytes ? 2 : 4, kBits = kBytes ? 8 : 16, kEach = 32 / kBits;
    static constexpr uint32_t kOnes = kBytes ? 0x01010101u : 0x00010001u;
    static constexpr uint32_t kTops = kOnes << (kBits - 1), kRank = size * size / 2;
    static constexpr int kCountPitch = kSquare + 1;
    struct Counts {
        uint32_t v[kWords];
    };

  public:
    static constexpr int kOut = kSquare - size + 1;

  private:
    // In bytes: keys in order; sets of columns, of which less stay than there are at first; those
    // of rows likewise; counts. Groups go where sets have been if there is room enough.
    static constexpr int kSetsAt = kItems * sizeof(K), kSet = kSetWords * 4;
    static constexpr int kCountsAt = kSetsAt + (kSquare + kOut) * kSet;
    static constexpr int kCountsEnd = kCountsAt + kOut * kCountPitch * sizeof(Counts);
    static constexpr bool kGap = (kSquare - kOut) * kSet >= kItems;
    static constexpr int kGroupsAt = kGap ? kSetsAt + kOut * kSet : kCountsEnd;
    static constexpr int kEnd =
        larger(kSetsAt + 2 * kSquare * kSet, larger(kCountsEnd, kGroupsAt + kItems));

  public:
    static constexpr int kBytesOfRoom = larger<int>(kEnd, 2 * kItems * sizeof(I));

    CVCLI_FN explicit RankSquare(uint8_t* room) : room_(room) {}

    // fetch(y, x) gives the sample there; take(y, x, median) gets each result.
    template <class Fetch, class Take>
    CVCLI_FN void run(const Fetch& fetch, const Take& take) const {
        I items[kOwnItems];
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) {
            const int at = threadIdx.x + i * kItemThreads, y = at / kSquare, x = at % kSquare;
            // What is below the square is read too, and comes last in the order.
            const K found = order_key(fetch(y, x));
            const K key = y < kSquare ? found : static_cast<K>(~K{0});
            items[i] = I{key} << SquarePlace::kBits | static_cast<uint32_t>(y << 6 | x);
        }
        ItemSort<I>(reinterpret_cast<I*>(room_))(items);
        __syncthreads();
        SquarePlace places[kOwnItems];
        K* keys = reinterpret_cast<K*>(room_) + threadIdx.x * kOwnItems;
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) {
            places[i] = {static_cast<uint32_t>(items[i])};
            keys[i] = static_cast<K>(items[i] >> SquarePlace::kBits);
        }
        make_sets(places);
        __syncthreads();
        make_counts(places);
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x; i < kOut * kOut; i += kItemThreads) {
            take(i / kOut, i % kOut, median(i / kOut, i % kOut));
        }
    }

  private:
    // A word of the set of row or column `line`; those of neighbours lie in other banks.
    CVCLI_FN static int set_word(int line, int word) {
        return line * kSetWords + (word ^ (line & 7) * 4);
    }
    // Which entries of the order each column has, then which each window's columns have; so of
    // rows.
    CVCLI_FN void make_sets(const SquarePlace (&places)[kOwnItems]) const {
        uint32_t* sets = reinterpret_cast<uint32_t*>(room_ + kSetsAt);
        uint32_t* rows = sets + kSquare * kSetWords;
#pragma unroll 1
        for (int i = threadIdx.x; i < 2 * kSquare * kSetWords / 4; i += kItemThreads) {
            reinterpret_cast<uint4*>(sets)[i] = {0, 0, 0, 0};
        }
        __syncthreads();
        const int word = threadIdx.x / 4;
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) {
            if (!places[i].inside()) continue;
            const uint32_t bit = 1u << (threadIdx.x % 4 * kOwnItems + i);
            atomicOr(sets + set_word(places[i].x(), word), bit);
            atomicOr(rows + set_word(places[i].y(), word), bit);
        }
        __syncthreads();
        if (threadIdx.x < 2 * kSetWords) {
            join_lines(threadIdx.x < kSetWords ? sets : rows, threadIdx.x % kSetWords);
        }
    }
    CVCLI_FN static void join_lines(uint32_t* sets, int word) {
        uint32_t joined = 0;
#pragma unroll
        for (int line = 0; line < size; ++line) joined ^= sets[set_word(line, word)];
#pragma unroll
        for (int line = 0; line < kOut; ++line) {
            uint32_t* at = sets + set_word(line, word);
            const uint32_t gone = *at;
            *at = joined;
            if (line + size < kSquare) joined ^= gone ^ sets[set_word(line + size, word)];
        }
    }
    // Of the windows that begin in a row and end in a column or left of it: how many samples of
    // each group or one below it their right parts have, from the square's left edge on.
    CVCLI_FN void make_counts(const SquarePlace (&places)[kOwnItems]) const {
        uint8_t* groups = room_ + kGroupsAt;
#pragma unroll
        for (int i = 0; i < kOwnItems; ++i) {
            if (!places[i].inside()) continue;
            groups[places[i].y() * kSquare + places[i].x()] =
                static_cast<uint8_t>(threadIdx.x * kOwnItems / kGroupItems);
        }
        __syncthreads();
        uint32_t* counts = reinterpret_cast<uint32_t*>(room_ + kCountsAt);
#pragma unroll 1
        for (int i = threadIdx.x; i < kSquare * kWords; i += kItemThreads) {
            count_column(groups + i / kWords, counts + kWords + i, i % kWords);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < kOut * kWords; i += kItemThreads) {
            uint32_t* row = counts + i / kWords * kCountPitch * kWords + i % kWords;
            uint32_t sum = 0;
            row[0] = 0;
#pragma unroll
            for (int x = 1; x < kCountPitch; ++x) row[x * kWords] = sum += row[x * kWords];
        }
    }
    CVCLI_FN static void count_column(const uint8_t* groups, uint32_t* counts, int word) {
        const auto ones = [&](int y) {
            const int shift = (groups[y * kSquare] - word * kEach) * kBits;
            return shift <= 0 ? kOnes : shift < 32 ? kOnes << shift : 0u;
        };
        uint32_t sum = 0;
#pragma unroll
        for (int y = 0; y < size; ++y) sum += ones(y);
#pragma unroll
        for (int y = 0; y < kOut; ++y) {
            counts[y * kCountPitch * kWords] = sum;
            if (y + size < kSquare) sum += ones(y + size) - ones(y);
        }
    }
    // The group that the median of the window from (y, x) on is in, and which of the window's
    // samples in the group it is.
    CVCLI_FN int find_group(int y, int x, uint32_t& rank) const {
        const Counts* row = reinterpret_cast<const Counts*>(room_ + kCountsAt) + y * kCountPitch;
        const Counts left = row[x], right = row[x + size];
        constexpr uint32_t room = kTops - kOnes - kRank * kOnes;
        int group = 0;
        uint32_t below = 0;
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            const uint32_t counts = right.v[i] - left.v[i];
            const int under = __popc(~(counts + room) & kTops);
            if (under) below = counts >> (kBits * (under - 1)) & ((1u << kBits) - 1);
            group += under;
        }
        rank = kRank - below;
        return group;
    }
    CVCLI_FN T median(int y, int x) const {
        constexpr int words = kGroupItems / 32;
        uint32_t rank;
        const int group = find_group(y, x, rank);
        const uint32_t* sets = reinterpret_cast<const uint32_t*>(room_ + kSetsAt);
        const uint32_t* rows = sets + kSquare * kSetWords;
        uint32_t both[words];
#pragma unroll
        for (int i = 0; i < words; i += 4) {
            const int word = group * words + i;
            const uint4 a = *reinterpret_cast<const uint4*>(sets + set_word(x, word));
            const uint4 b = *reinterpret_cast<const uint4*>(rows + set_word(y, word));
            both[i] = a.x & b.x, both[i + 1] = a.y & b.y;
            both[i + 2] = a.z & b.z, both[i + 3] = a.w & b.w;
        }
        uint32_t set = both[0], before = 0, sum = 0;
        int at = group * kGroupItems;
#pragma unroll
        for (int i = 0; i < words - 1; ++i) {
            sum += __popc(both[i]);
            if (sum <= rank)
                set = both[i + 1], before = sum, at = group * kGroupItems + 32 * i + 32;
        }
        at += nth_bit(set, rank - before);
        return key_sample(reinterpret_cast<const K*>(room_)[at], T{});
    }
    CVCLI_FN static int nth_bit(uint32_t set, uint32_t n) {
        int at = 0;
#pragma unroll
        for (int half = 16; half > 0; half /= 2) {
            const uint32_t low = __popc(set & ((1u << half) - 1));
            if (low <= n) n -= low, at += half, set >>= half;
        }
        return at;
    }
    uint8_t* room_;
};

// One square of results of one channel.
template <int size, int C, class T>
CVCLI_FN void median_square(const Image& src, const Image& dst, const Frame& frame, int32_t left,
                            int32_t top, int channel) {
    constexpr int R = size / 2;
    using Square = RankSquare<size, T>;
    __shared__ __align__(16) uint8_t room[Square::kBytesOfRoom];
    static_assert(sizeof room <= 48 * 1024, "as much as any GPU gives unasked");
    const int32_t y0 = frame.y0 + top - R, x0 = frame.x0 + left - R;
    const uint8_t* first = static_cast<const uint8_t*>(src.data) + channel * sizeof(T);
    __syncthreads();
    Square(room).run(
        [&](int y, int x) {
            const uint32_t line = smaller(larger(y0 + y, 0), frame.height - 1);
            const uint32_t column = smaller(larger(x0 + x, 0), frame.width - 1);
            const uint8_t* row = first + static_cast<int64_t>(uint64_t{line}) * src.row_pitch;
            return read_only(reinterpret_cast<const T*>(row) + uint64_t{column} * C);
        },
        [&](int y, int x, T median) {
            if (top + y >= dst.height || left + x >= dst.width) return;
            row_at<T>(dst, top + y)[int64_t{left + x} * C + channel] = median;
        });
}

}  // namespace cvcli
