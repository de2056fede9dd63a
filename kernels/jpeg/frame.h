// What a JPEG file holds before its pixels are computed: ITU-T T.81's frames, scans and tables.
#pragma once

#include "../core/platform.h"

namespace cvcli::jpeg {

enum Fault : int32_t {
    kTruncated = -1,
    kCorrupt = -2,
    kUnsupported = -3,
    kNoMemory = -4,
    kUnaligned = -5,
};

constexpr int kBlock = 64;
constexpr int kMostComponents = 4;
constexpr int kMostScans = 256;

// Row by row place of the k-th coefficient of a file.
constexpr uint8_t kZigzag[kBlock] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct QuantTable {
    bool wide, defined;
    uint16_t values[kBlock];  // in the order of a file
};

// A Huffman code: how many codes there are of each length, and the symbols by rising code.
struct Codes {
    bool defined;
    uint8_t counts[17];
    uint8_t symbols[256];

    int size() const {
        int sum = 0;
        for (int length = 1; length <= 16; ++length) sum += counts[length];
        return sum;
    }
};

struct Component {
    uint8_t id, table;
    int h, v;               // sampling factors
    int64_t columns, rows;  // blocks that hold pixels
    int64_t across, down;   // blocks with those that fill the last unit of an interleaved scan
    int16_t* coefficients;  // (down, across, 64), each block in the order of a file

    int16_t* block(int64_t y, int64_t x) const { return coefficients + (y * across + x) * kBlock; }
};

// What one scan holds: some components, a band of coefficients, some of their bits.
struct Scan {
    int count;
    uint8_t component[kMostComponents], dc[kMostComponents], ac[kMostComponents];
    int first, last, high, low;
    int interval;                      // units between restarts, 0 for none
    bool complete_codes;               // its tables have a code for whatever an image may need
    Codes codes[2 * kMostComponents];  // DC, then AC tables of a sequential scan
};

struct Frame {
    uint8_t marker, precision;
    int height, width, count;
    int h, v;  // largest sampling factors
    Component components[kMostComponents];
    QuantTable tables[4];
    int scans;
    Scan* scan;

    bool progressive() const { return marker == 0xC2; }

    // Works out the components' blocks from the size and the sampling factors.
    void measure() {
        h = v = 1;
        for (int i = 0; i < count; ++i) {
            h = components[i].h > h ? components[i].h : h;
            v = components[i].v > v ? components[i].v : v;
        }
        const auto divided = [](int64_t n, int64_t by) { return (n + by - 1) / by; };
        for (int i = 0; i < count; ++i) {
            Component& part = components[i];
            part.columns = divided(divided(int64_t(width) * part.h, h), 8);
            part.rows = divided(divided(int64_t(height) * part.v, v), 8);
            part.across = divided(width, 8 * h) * part.h;
            part.down = divided(height, 8 * v) * part.v;
        }
    }
};

// Calls `visit(component, y, x)` for the blocks of a scan in order, and `boundary(unit)` before
// each unit; both return false to end early. Outside the pixels a component has blocks too where
// scans interleave.
template <class Visit, class Boundary>
bool walk(const Frame& frame, const Scan& scan, Visit visit, Boundary boundary) {
    int64_t unit = 0;
    if (scan.count == 1) {
        const Component& part = frame.components[scan.component[0]];
        for (int64_t y = 0; y < part.rows; ++y) {
            for (int64_t x = 0; x < part.columns; ++x) {
                if (!boundary(unit++) || !visit(0, y, x)) return false;
            }
        }
        return true;
    }
    const int64_t down = frame.components[0].down / frame.components[0].v;
    const int64_t across = frame.components[0].across / frame.components[0].h;
    for (int64_t row = 0; row < down; ++row) {
        for (int64_t column = 0; column < across; ++column) {
            if (!boundary(unit++)) return false;
            for (int i = 0; i < scan.count; ++i) {
                const Component& part = frame.components[scan.component[i]];
                for (int y = 0; y < part.v; ++y) {
                    for (int x = 0; x < part.h; ++x) {
                        if (!visit(i, row * part.v + y, column * part.h + x)) return false;
                    }
                }
            }
        }
    }
    return true;
}

inline int bits_of(uint32_t value) {
#if defined(__GNUC__)
    return value ? 32 - __builtin_clz(value) : 0;
#else
    int bits = 0;
    for (; value; value >>= 1) ++bits;
    return bits;
#endif
}

}  // namespace cvcli::jpeg
