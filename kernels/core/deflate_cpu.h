// Deflate (RFC 1951) by Huffman codes and runs of one byte, in blocks with codes of their own.
#pragma once

#include "core/platform.h"

namespace cvcli {
namespace png {

// Bytes after which a block is closed; it may be longer by a row.
constexpr int64_t BLOCK = 3 << 14;
constexpr int LITERALS = 286, END = 256, LONGEST = 258;
// Four codes and what is left of a byte fit 64 bits, so codes are a bit shorter than they may be.
constexpr int CODE_BITS = 14, LENGTH_BITS = 7;
// Runs are looked for where the second half of so many bytes is one, so they have at least 4.
constexpr int STEP = 8;

struct Bits {
    uint8_t* at;
    uint64_t held = 0;
    int count = 0;

    void put(uint32_t value, int nbits) {
        held |= static_cast<uint64_t>(value) << count;
        count += nbits;
    }

    // At most 56 bits may be put between two of these.
    void flush() {
        for (; count >= 8; count -= 8, held >>= 8) *at++ = static_cast<uint8_t>(held);
    }

    // The same, where 8 bytes may be written.
    void flush_fast() {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
        flush();
        return;
#endif
        memcpy(at, &held, 8);
        at += count >> 3;
        held >>= count & 56;
        count &= 7;
    }

    void align() {
        count = (count + 7) & ~7;
        flush();
    }
};

// The first byte is the lowest, whatever the processor's order.
inline uint64_t load(const uint8_t* at) {
    uint64_t value;
    memcpy(&value, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

// Adler-32 (RFC 1950), in steps that a vector takes at once.
inline void adler(const uint8_t* data, int64_t nbytes, uint32_t* low, uint32_t* high) {
    constexpr int WIDE = 32;
    uint32_t a = *low, b = *high;
    while (nbytes >= WIDE) {
        // So many bytes can't overflow.
        int64_t steps = nbytes / WIDE < 128 ? nbytes / WIDE : 128;
        nbytes -= steps * WIDE;
        for (; steps > 0; steps--, data += WIDE) {
            uint32_t sum = 0, weighted = 0;
            for (int i = 0; i < WIDE; i++) sum += data[i], weighted += (WIDE - i) * data[i];
            b += WIDE * a + weighted;
            a += sum;
        }
        a %= 65521, b %= 65521;
    }
    for (; nbytes > 0; nbytes--) a += *data++, b += a;
    *low = a % 65521, *high = b % 65521;
}

// Calls `eight`, `four` and `one` for so many bytes, `run` for how often the last is repeated.
template <typename Eight, typename Four, typename One, typename Run>
void walk(const uint8_t* data, int64_t nbytes, Eight&& eight, Four&& four, One&& one, Run&& run) {
    int64_t i = 0;
    if (nbytes > 0) one(data[i++]);
    while (i + STEP <= nbytes) {
        const uint64_t changes = load(data + i) ^ load(data + i - 1);
        if (changes >> 32) {
            eight(data + i);
            i += STEP;
            continue;
        }
        if (changes) {
            four(data + i);
            i += 4;
        }
        int64_t end = i + 4;
        while (end < nbytes && end - i < LONGEST && data[end] == data[i]) end++;
        run(static_cast<int>(end - i));
        i = end;
    }
    for (; i < nbytes; i++) one(data[i]);
}

// The symbol of a run's length, and the bits behind it (RFC 1951, 3.2.5).
struct Length {
    int symbol, extra, nbits;
};

inline Length length_of(int run) {
    if (run == LONGEST) return {285, 0, 0};
    if (run < 11) return {254 + run, 0, 0};
    const int above = run - 3;
    int nbits = 0;
    while (above >> (nbits + 3)) nbits++;
    return {257 + 4 * nbits + 4 + (above >> nbits) - 4, above & ((1 << nbits) - 1), nbits};
}

// Huffman codes of up to 288 symbols.
struct Codes {
    uint8_t nbits[288];
    uint16_t code[288];
};

struct Weighed {
    uint32_t weight;
    int symbol;
};

// Symbols that occur, the rarest first; how many.
inline int sorted(const uint32_t* weights, int count, Weighed* found) {
    int n = 0;
    for (int s = 0; s < count; s++) {
        if (!weights[s]) continue;
        int at = n++;
        for (; at > 0 && found[at - 1].weight > weights[s]; at--) found[at] = found[at - 1];
        found[at] = {weights[s], s};
    }
    return n;
}

// Depths of the leaves of Huffman's tree, by two queues.
inline void depths(const Weighed* leaves, int n, int* depth) {
    uint32_t weight[288];
    int parent[576];
    int leaf = 0, inner = 0;
    for (int made = 0; made < n - 1; made++) {
        uint32_t sum = 0;
        for (int k = 0; k < 2; k++) {
            const bool take = leaf < n && (inner >= made || leaves[leaf].weight <= weight[inner]);
            sum += take ? leaves[leaf].weight : weight[inner];
            parent[take ? leaf++ : n + inner++] = n + made;
        }
        weight[made] = sum;
    }
    int deep[576];
    deep[2 * n - 2] = 0;
    for (int i = 2 * n - 3; i >= 0; i--) {
        deep[i] = deep[parent[i]] + 1;
        if (i < n) depth[i] = deep[i];
    }
}

// Shortens depths to a limit and makes the code complete again; the rarest symbols come first.
inline void limit(int* depth, int n, int most) {
    const int64_t whole = int64_t{1} << most;
    int64_t used = 0;
    for (int i = 0; i < n; i++) {
        if (depth[i] > most) depth[i] = most;
        used += int64_t{1} << (most - depth[i]);
    }
    for (int i = 0; used > whole; i = (i + 1) % n)
        if (depth[i] < most) used -= int64_t{1} << (most - ++depth[i]);
    for (int i = n - 1; i >= 0; i--)
        while (depth[i] > 1 && used + (int64_t{1} << (most - depth[i])) <= whole)
            used += int64_t{1} << (most - depth[i]--);
}

inline uint16_t reversed(uint32_t code, int nbits) {
    uint32_t result = 0;
    for (int i = 0; i < nbits; i++) result |= (code >> i & 1) << (nbits - 1 - i);
    return static_cast<uint16_t>(result);
}

inline Codes codes_of(const uint32_t* weights, int count, int most) {
    Weighed leaves[288];
    int depth[288] = {1};
    const int n = sorted(weights, count, leaves);
    if (n > 1) {
        depths(leaves, n, depth);
        limit(depth, n, most);
    }
    Codes codes{};
    uint32_t each[CODE_BITS + 1] = {};
    for (int i = 0; i < n; i++) {
        codes.nbits[leaves[i].symbol] = static_cast<uint8_t>(depth[i]);
        each[depth[i]]++;
    }
    // The first code of each length (RFC 1951, 3.2.2).
    uint32_t next[CODE_BITS + 1] = {};
    for (int b = 1; b <= CODE_BITS; b++) next[b] = (next[b - 1] + each[b - 1]) << 1;
    for (int s = 0; s < count; s++) {
        const int nbits = codes.nbits[s];
        if (nbits) codes.code[s] = reversed(next[nbits]++, nbits);
    }
    return codes;
}

// Code lengths as the header has them: 16 repeats the last, 17 and 18 are zeros.
struct Tokens {
    uint8_t symbol[288], extra[288];
    int count = 0;

    void add(int kind, int more) {
        symbol[count] = static_cast<uint8_t>(kind);
        extra[count++] = static_cast<uint8_t>(more);
    }

    void add_same(int value, int times) {
        if (value == 0) {
            for (; times >= 11; times -= times < 138 ? times : 138)
                add(18, (times < 138 ? times : 138) - 11);
            if (times >= 3) add(17, times - 3), times = 0;
        } else if (times > 3) {
            add(value, 0), times--;
            for (; times >= 3; times -= times < 6 ? times : 6) add(16, (times < 6 ? times : 6) - 3);
        }
        for (; times > 0; times--) add(value, 0);
    }
};

inline void put_header(const Codes& literals, Bits* bits) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + 1];
    int count = LITERALS;
    while (count > END + 1 && !literals.nbits[count - 1]) count--;
    memcpy(lengths, literals.nbits, count);
    // The only distance is 1; its code has one bit.
    lengths[count] = 1;
    Tokens tokens;
    for (int i = 0, j; i <= count; i = j) {
        for (j = i + 1; j <= count && lengths[j] == lengths[i];) j++;
        tokens.add_same(lengths[i], j - i);
    }
    uint32_t weights[19] = {};
    for (int i = 0; i < tokens.count; i++) weights[tokens.symbol[i]]++;
    const Codes codes = codes_of(weights, 19, LENGTH_BITS);
    int sent = 19;
    while (sent > 4 && !codes.nbits[order[sent - 1]]) sent--;
    bits->put(static_cast<uint32_t>(count - 257), 5);
    bits->put(0, 5);
    bits->put(static_cast<uint32_t>(sent - 4), 4);
    for (int i = 0; i < sent; i++) bits->put(codes.nbits[order[i]], 3), bits->flush();
    for (int i = 0; i < tokens.count; i++) {
        const int s = tokens.symbol[i];
        bits->put(codes.code[s], codes.nbits[s]);
        if (s >= 16) bits->put(tokens.extra[i], s == 16 ? 2 : s == 17 ? 3 : 7);
        bits->flush();
    }
}

inline void put_stored(const uint8_t* data, int64_t nbytes, bool last, Bits* bits) {
    bits->put(last, 3);
    bits->align();
    const uint64_t size = static_cast<uint64_t>(nbytes) | static_cast<uint64_t>(~nbytes) << 16;
    for (int k = 0; k < 4; k++) *bits->at++ = static_cast<uint8_t>(size >> 8 * k);
    memcpy(bits->at, data, nbytes);
    bits->at += nbytes;
}

inline void put_codes(const uint8_t* data, int64_t nbytes, const Codes& codes, Bits* target) {
    // A copy: what is written might else be the counters themselves, for all a compiler knows.
    Bits bits = *target;
    bits.flush();
    // Codes above their lengths: one load each.
    uint32_t both[LITERALS];
    for (int s = 0; s < LITERALS; s++) both[s] = uint32_t{codes.code[s]} << 8 | codes.nbits[s];
    const auto put = [&](int symbol) { bits.put(codes.code[symbol], codes.nbits[symbol]); };
    // Joined in pairs, so that only the last step waits for the bits before.
    const auto four = [&](const uint8_t* from) {
        const uint32_t a = both[from[0]], b = both[from[1]], c = both[from[2]], d = both[from[3]];
        const int front = (a & 255) + (b & 255), back = (c & 255) + (d & 255);
        const uint64_t head = (a >> 8) | uint64_t{b >> 8} << (a & 255);
        const uint64_t tail = (c >> 8) | uint64_t{d >> 8} << (c & 255);
        bits.held |= (head | tail << front) << bits.count;
        bits.count += front + back;
        bits.flush_fast();
    };
    walk(
        data, nbytes, [&](const uint8_t* from) { four(from), four(from + 4); }, four,
        [&](uint8_t value) { put(value), bits.flush_fast(); },
        [&](int run) {
            const Length length = length_of(run);
            put(length.symbol);
            bits.put(static_cast<uint32_t>(length.extra), length.nbits);
            bits.put(0, 1);
            bits.flush_fast();
        });
    put(END);
    bits.flush();
    *target = bits;
}

// One block of at most 65535 bytes.
inline void put_block(const uint8_t* data, int64_t nbytes, bool last, Bits* bits) {
    // Four counts of each, as one that is wanted again at once would have to be waited for.
    uint32_t some[4][LITERALS] = {};
    uint64_t more = 0;
    walk(
        data, nbytes,
        [&](const uint8_t* from) {
            for (int k = 0; k < STEP; k++) some[k & 3][from[k]]++;
        },
        [&](const uint8_t* from) {
            for (int k = 0; k < 4; k++) some[k][from[k]]++;
        },
        [&](uint8_t value) { some[0][value]++; },
        [&](int run) {
            const Length length = length_of(run);
            some[0][length.symbol]++;
            more += length.nbits + 1;
        });
    for (int s = 0; s < LITERALS; s++) some[0][s] += some[1][s] + some[2][s] + some[3][s];
    some[0][END] = 1;
    const Codes codes = codes_of(some[0], LITERALS, CODE_BITS);
    for (int s = 0; s < LITERALS; s++) more += uint64_t{some[0][s]} * codes.nbits[s];
    // 2,400 bits are more than any header takes.
    if (more + 2400 >= static_cast<uint64_t>(nbytes) * 8)
        return put_stored(data, nbytes, last, bits);
    bits->put(4 | last, 3);
    put_header(codes, bits);
    put_codes(data, nbytes, codes, bits);
}

inline void put_all(const uint8_t* data, int64_t nbytes, bool last, Bits* bits) {
    constexpr int64_t MOST = 65535;
    for (int64_t at = 0; at < nbytes; at += MOST) {
        const int64_t size = nbytes - at < MOST ? nbytes - at : MOST;
        put_block(data + at, size, last && at + size == nbytes, bits);
    }
}

}  // namespace png
}  // namespace cvcli
