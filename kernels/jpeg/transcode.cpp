// Turns, mirrors and crops a JPEG file without computing a pixel: blocks change places, and within
// them a mirrored axis negates its odd frequencies, a transposition swaps the two.
#include <cstdlib>

#include "read.h"
#include "write.h"

namespace cvcli::jpeg {
namespace {

// Rows and columns that are kept of a source of a size, read backwards where flipped; then perhaps
// the axes are swapped.
struct Move {
    int32_t source_width, source_height;
    int32_t x, y, width, height, flip_x, flip_y, transpose;
};

struct Memory {
    Frame frame = {};

    ~Memory() {
        for (Component& part : frame.components) std::free(part.coefficients);
        std::free(frame.scan);
    }
};

void rearrange(const Frame& frame, const Move& move) {
    uint8_t place_of[kBlock], from[kBlock];
    for (int k = 0; k < kBlock; ++k) place_of[kZigzag[k]] = uint8_t(k);
    int16_t sign[kBlock];
    for (int k = 0; k < kBlock; ++k) {
        int y = kZigzag[k] / 8, x = kZigzag[k] % 8;
        if (move.transpose) {
            const int swapped = y;
            y = x, x = swapped;
        }
        from[k] = place_of[8 * y + x];
        sign[k] = ((x & 1 & move.flip_x) ^ (y & 1 & move.flip_y)) ? -1 : 1;
    }
    for (int i = 0; i < frame.count; ++i) {
        const Component& part = frame.components[i];
        int16_t* block = part.coefficients;
        for (int64_t n = part.across * part.down; n > 0; --n, block += kBlock) {
            int16_t old[kBlock];
            std::memcpy(old, block, sizeof old);
            for (int k = 0; k < kBlock; ++k) block[k] = int16_t(old[from[k]] * sign[k]);
        }
    }
}

// Gives the coefficients of the result their places, from those of the source.
int move_blocks(Frame& frame, const Move& move) {
    Frame source = frame;
    const int64_t wide = 8 * source.h, high = 8 * source.v;
    const int64_t right = int64_t(move.x) + move.width, bottom = int64_t(move.y) + move.height;
    const bool inside = move.x >= 0 && move.y >= 0 && move.width > 0 && move.height > 0 &&
                        right <= source.width && bottom <= source.height;
    if (!inside || (move.flip_x ? right : move.x) % wide ||
        (move.flip_y ? bottom : move.y) % high) {
        return kUnaligned;
    }
    frame.width = move.transpose ? move.height : move.width;
    frame.height = move.transpose ? move.width : move.height;
    for (int i = 0; i < frame.count && move.transpose; ++i) {
        frame.components[i].h = source.components[i].v;
        frame.components[i].v = source.components[i].h;
    }
    frame.measure();
    for (int i = 0; i < frame.count; ++i) {
        const Component& old = source.components[i];
        Component& part = frame.components[i];
        const size_t nbytes = 2 * kBlock * size_t(part.across) * size_t(part.down);
        auto* const moved = static_cast<int16_t*>(std::malloc(nbytes));
        if (!moved) return kNoMemory;
        part.coefficients = moved;
        const int64_t left = (move.flip_x ? right : move.x) / wide * old.h;
        const int64_t top = (move.flip_y ? bottom : move.y) / high * old.v;
        for (int64_t y = 0; y < part.down; ++y) {
            for (int64_t x = 0; x < part.across; ++x) {
                const int64_t along = move.transpose ? y : x, below = move.transpose ? x : y;
                const int64_t from_x = move.flip_x ? left - 1 - along : left + along;
                const int64_t from_y = move.flip_y ? top - 1 - below : top + below;
                std::memcpy(part.block(y, x), old.block(from_y, from_x), 2 * kBlock);
            }
        }
        std::free(old.coefficients);
    }
    return 0;
}

void transpose_tables(Frame& frame) {
    uint8_t place_of[kBlock];
    for (int k = 0; k < kBlock; ++k) place_of[kZigzag[k]] = uint8_t(k);
    for (QuantTable& table : frame.tables) {
        const QuantTable old = table;
        for (int k = 0; k < kBlock; ++k) {
            table.values[k] = old.values[place_of[kZigzag[k] % 8 * 8 + kZigzag[k] / 8]];
        }
    }
}

}  // namespace
}  // namespace cvcli::jpeg

// Writes the moved file, without the application segments of the source. Returns its length, of
// which what doesn't fit is not written, or a negative `Fault`.
CVCLI_EXPORT int64_t cvcli_jpeg_move(const uint8_t* data, int64_t size,
                                     const cvcli::jpeg::Move* move, uint8_t* out,
                                     int64_t capacity) {
    using namespace cvcli::jpeg;
    Memory memory;
    Frame& frame = memory.frame;
    Reader reader(data, size, frame, move->source_width, move->source_height);
    if (const int fault = reader.read()) return fault;
    rearrange(frame, *move);
    if (const int fault = move_blocks(frame, *move)) return fault;
    if (move->transpose) transpose_tables(frame);
    BitWriter bits(out, capacity);
    if (const int fault = Writer(frame, bits).write()) return fault;
    return bits.size;
}
