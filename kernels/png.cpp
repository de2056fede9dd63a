// PNG pixels to and from what a zlib stream holds: rows filtered by what is near them.
//
// The stream is written here, the Paeth filter and Huffman codes with runs of one byte, which is
// all that photographs gain from deflate. The bytes are the same at every SIMD level.
#include "core/deflate_cpu.h"

namespace {

using cvcli::png::Bits;

// The nearest to left + up - corner of the three (PNG specification, 9.4).
inline int paeth(int left, int up, int corner) {
    const int by_left = up - corner, by_up = left - corner, both = by_left + by_up;
    const int to_left = by_left < 0 ? -by_left : by_left;
    const int to_up = by_up < 0 ? -by_up : by_up;
    const int to_corner = both < 0 ? -both : both;
    const int nearer = to_left <= to_up ? left : up;
    const int least = to_left <= to_up ? to_left : to_up;
    return least <= to_corner ? nearer : corner;
}

template <int N>
void add_left(const uint8_t* in, uint8_t* out, int64_t nbytes) {
    uint8_t last[N] = {};
    for (int64_t i = 0; i < nbytes; i += N)
        for (int c = 0; c < N; c++)
            out[i + c] = last[c] = static_cast<uint8_t>(in[i + c] + last[c]);
}

template <int N>
void add_mean(const uint8_t* in, const uint8_t* up, uint8_t* out, int64_t nbytes) {
    uint8_t last[N] = {};
    for (int64_t i = 0; i < nbytes; i += N)
        for (int c = 0; c < N; c++) {
            const int above = up ? up[i + c] : 0;
            out[i + c] = last[c] = static_cast<uint8_t>(in[i + c] + (last[c] + above) / 2);
        }
}

// Whole pixels of a row in vectors of 16 bits, as far as 8 bytes can be read; where it ended. Each
// pixel waits for the one before, so that its channels are all there is to do at once.
template <int N>
int64_t add_paeth_fast(const uint8_t* in, const uint8_t* up, uint8_t* out, int64_t nbytes) {
    int64_t i = 0;
#if defined(__GNUC__) && defined(__SSE2__)
    typedef int16_t Wide __attribute__((vector_size(16)));
    typedef uint8_t Bytes __attribute__((vector_size(8)));
    const auto load = [](const uint8_t* at) {
        Bytes bytes;
        memcpy(&bytes, at, 8);
        return __builtin_convertvector(bytes, Wide);
    };
    const auto size = [](Wide v) { return v > -v ? v : -v; };
    Wide last{}, corner{};
    for (; i + 8 <= nbytes; i += N) {
        const Wide above = load(up + i), by_left = above - corner, by_up = last - corner;
        const Wide to_left = size(by_left), to_up = size(by_up), to_corner = size(by_left + by_up);
        const Wide nearer = to_left <= to_up ? last : above;
        const Wide least = to_left <= to_up ? to_left : to_up;
        const Wide found = least <= to_corner ? nearer : corner;
        last = (load(in + i) + found) & 255;
        corner = above;
        const Bytes made = __builtin_convertvector(last, Bytes);
        memcpy(out + i, &made, 4);
    }
#endif
    return i;
}

template <int N>
void add_paeth(const uint8_t* in, const uint8_t* up, uint8_t* out, int64_t nbytes) {
    int last[N] = {}, corner[N] = {};
    const int64_t start = N >= 3 ? add_paeth_fast<N>(in, up, out, nbytes) : 0;
    for (int c = 0; c < N && start > 0; c++)
        last[c] = out[start - N + c], corner[c] = up[start - N + c];
    for (int64_t i = start; i < nbytes; i += N)
        for (int c = 0; c < N; c++) {
            const int above = up[i + c];
            last[c] = (in[i + c] + paeth(last[c], above, corner[c])) & 255;
            corner[c] = above;
            out[i + c] = static_cast<uint8_t>(last[c]);
        }
}

void add_up(const uint8_t* in, const uint8_t* up, uint8_t* out, int64_t nbytes) {
    for (int64_t i = 0; i < nbytes; i++) out[i] = static_cast<uint8_t>(in[i] + up[i]);
}

// One row back from its filter; false if there is no such filter. Above the first row is 0.
template <int N>
bool unfilter(int filter, const uint8_t* in, const uint8_t* up, uint8_t* out, int64_t nbytes) {
    switch (filter) {
        case 0:
            memcpy(out, in, nbytes);
            return true;
        case 1:
            add_left<N>(in, out, nbytes);
            return true;
        case 2:
            if (up)
                add_up(in, up, out, nbytes);
            else
                memcpy(out, in, nbytes);
            return true;
        case 3:
            add_mean<N>(in, up, out, nbytes);
            return true;
        case 4:
            // Of left alone, as up and corner are 0.
            if (up)
                add_paeth<N>(in, up, out, nbytes);
            else
                add_left<N>(in, out, nbytes);
            return true;
        default:
            return false;
    }
}

template <int N>
int32_t unfilter_all(const uint8_t* in, uint8_t* out, int64_t pitch, int64_t rows, int64_t nbytes) {
    const uint8_t* up = nullptr;
    for (int64_t y = 0; y < rows; y++, in += 1 + nbytes, out += pitch) {
        if (!unfilter<N>(in[0], in + 1, up, out, nbytes)) return 1;
        up = out;
    }
    return 0;
}

// A row after the Paeth filter, its number in front. Above the first row is 0.
void filter_row(const uint8_t* row, const uint8_t* up, uint8_t* out, int64_t nbytes, int n) {
    *out++ = up ? 4 : 1;
    for (int i = 0; i < n; i++) out[i] = static_cast<uint8_t>(row[i] - (up ? up[i] : 0));
    if (!up) {
        for (int64_t i = n; i < nbytes; i++) out[i] = static_cast<uint8_t>(row[i] - row[i - n]);
        return;
    }
    for (int64_t i = n; i < nbytes; i++) {
        const int near = paeth(row[i - n], up[i], up[i - n]);
        out[i] = static_cast<uint8_t>(row[i] - near);
    }
}

}  // namespace

// Pixels of 8-bit samples, `channels` each, from inflated rows of 1 + `nbytes`; not 0 if a row has
// a filter that isn't known.
CVCLI_EXPORT int32_t cvcli_png_unfilter(const uint8_t* in, uint8_t* out, int64_t pitch,
                                        int64_t rows, int64_t nbytes, int32_t channels) {
    switch (channels) {
        case 1:
            return unfilter_all<1>(in, out, pitch, rows, nbytes);
        case 2:
            return unfilter_all<2>(in, out, pitch, rows, nbytes);
        case 3:
            return unfilter_all<3>(in, out, pitch, rows, nbytes);
        default:
            return unfilter_all<4>(in, out, pitch, rows, nbytes);
    }
}

// Bytes that a zlib stream of so many rows takes at most.
CVCLI_EXPORT int64_t cvcli_png_most(int64_t rows, int64_t nbytes) {
    const int64_t raw = rows * (1 + nbytes);
    return raw + raw / 4096 * 5 + 1024;
}

// Bytes that are needed beside, for rows after their filter.
CVCLI_EXPORT int64_t cvcli_png_scratch(int64_t nbytes) {
    return cvcli::png::BLOCK + 1 + nbytes;
}

// The zlib stream of pixels of 8-bit samples; its length. `out` has room for `cvcli_png_most`.
CVCLI_EXPORT int64_t cvcli_png_deflate(const uint8_t* pixels, int64_t pitch, int64_t rows,
                                       int64_t nbytes, int32_t channels, uint8_t* scratch,
                                       uint8_t* out) {
    Bits bits{out + 2};
    out[0] = 0x78, out[1] = 0x01;
    uint32_t low = 1, high = 0;
    int64_t filled = 0;
    for (int64_t y = 0; y < rows; y++, pixels += pitch) {
        filter_row(pixels, y ? pixels - pitch : nullptr, scratch + filled, nbytes, channels);
        filled += 1 + nbytes;
        const bool last = y == rows - 1;
        if (filled < cvcli::png::BLOCK && !last) continue;
        cvcli::png::adler(scratch, filled, &low, &high);
        cvcli::png::put_all(scratch, filled, last, &bits);
        filled = 0;
    }
    bits.align();
    const uint32_t sum = high << 16 | low;
    for (int i = 0; i < 4; i++) *bits.at++ = static_cast<uint8_t>(sum >> (24 - 8 * i));
    return bits.at - out;
}
