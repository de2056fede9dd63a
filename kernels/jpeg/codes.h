// Codes for what is written: counted, built, looked up.
#pragma once

#include "frame.h"

namespace cvcli::jpeg {

// The shortest code of at most 16 bits for symbols that occur so often (T.81 K.2), of which the
// code of ones alone is left free.
inline Codes shortest_codes(const int64_t* counts) {
    constexpr int kSymbols = 257;
    int64_t weight[kSymbols];
    int depth[kSymbols] = {}, next[kSymbols];
    for (int i = 0; i < kSymbols; ++i) {
        weight[i] = i < 256 ? counts[i] : 1;
        next[i] = -1;
    }
    for (;;) {
        // The two rarest groups, of equals the one with the larger symbol.
        int rare = -1, other = -1;
        for (int i = 0; i < kSymbols; ++i) {
            if (weight[i] && (rare < 0 || weight[i] <= weight[rare])) rare = i;
        }
        for (int i = 0; i < kSymbols; ++i) {
            if (weight[i] && i != rare && (other < 0 || weight[i] <= weight[other])) other = i;
        }
        if (other < 0) break;
        weight[rare] += weight[other];
        weight[other] = 0;
        int last = rare;
        for (++depth[last]; next[last] >= 0; ++depth[last]) last = next[last];
        next[last] = other;
        for (int i = other; i >= 0; i = next[i]) ++depth[i];
    }
    int lengths[kSymbols + 1] = {};
    for (const int length : depth) lengths[length] += length > 0;
    for (int length = kSymbols; length > 16; --length) {
        while (lengths[length] > 0) {
            int shorter = length - 2;
            while (lengths[shorter] == 0) --shorter;
            lengths[length] -= 2;
            ++lengths[length - 1];
            lengths[shorter + 1] += 2;
            --lengths[shorter];
        }
    }
    int longest = 16;
    while (longest > 0 && lengths[longest] == 0) --longest;
    --lengths[longest];
    Codes codes = {};
    codes.defined = true;
    for (int length = 1; length <= 16; ++length) codes.counts[length] = uint8_t(lengths[length]);
    int place = 0;
    for (int length = 1; length < kSymbols; ++length) {
        for (int symbol = 0; symbol < 256; ++symbol) {
            if (depth[symbol] == length) codes.symbols[place++] = uint8_t(symbol);
        }
    }
    return codes;
}

struct Encoder {
    uint16_t code[256];
    uint8_t length[256];

    void set(const Codes& codes) {
        for (uint8_t& one : length) one = 0;
        uint32_t next = 0;
        int place = 0;
        for (int bits = 1; bits <= 16; ++bits, next <<= 1) {
            for (int i = 0; i < codes.counts[bits]; ++i, ++next) {
                code[codes.symbols[place]] = uint16_t(next);
                length[codes.symbols[place++]] = uint8_t(bits);
            }
        }
    }
};

}  // namespace cvcli::jpeg
