// Bits of entropy-coded data, in and out.
#pragma once

#include "frame.h"

namespace cvcli::jpeg {

// Whether one of four bytes is 255, after which a marker or a stuffed zero comes.
inline bool has_255(uint32_t bytes) {
    return (~bytes - 0x01010101u) & bytes & 0x80808080u;
}

// Reads bits up to the next marker, then zeros, which it counts.
struct BitReader {
    const uint8_t* at;
    const uint8_t* end;
    uint64_t bits = 0;
    int count = 0;
    int64_t zeros = 0;

    BitReader(const uint8_t* begin, const uint8_t* stop) : at(begin), end(stop) {}

    void fill() {
        while (count <= 32 && end - at >= 4) {
            const uint32_t four = uint32_t(at[0]) << 24 | at[1] << 16 | at[2] << 8 | at[3];
            if (has_255(four)) break;
            bits |= uint64_t(four) << (32 - count);
            count += 32;
            at += 4;
        }
        while (count <= 56) {
            uint64_t byte = 0;
            if (at < end && (*at != 0xFF || (at + 1 < end && at[1] == 0))) {
                byte = *at;
                at += byte == 0xFF ? 2 : 1;
            } else {
                zeros += 8;
            }
            bits |= byte << (56 - count);
            count += 8;
        }
    }

    uint32_t peek(int length) {
        if (count < length) fill();
        return uint32_t(bits >> (64 - length));
    }

    void skip(int length) {
        bits <<= length;
        count -= length;
    }

    uint32_t take(int length) {
        if (length == 0) return 0;
        const uint32_t value = peek(length);
        skip(length);
        return value;
    }

    // A signed value of a length, as T.81 extends it.
    int32_t extended(int length) {
        const int32_t value = int32_t(take(length));
        return length > 0 && value < (1 << (length - 1)) ? value - (1 << length) + 1 : value;
    }

    // Whether more was read than there is.
    bool overrun() const { return zeros > count; }

    // Goes past the restart marker that must be next.
    bool restart(int number) {
        bits = 0, count = 0, zeros = 0;
        while (at + 1 < end && at[0] == 0xFF && at[1] == 0xFF) ++at;
        if (end - at < 2 || at[0] != 0xFF || at[1] != 0xD0 + number) return false;
        at += 2;
        return true;
    }
};

// Finds the symbols of a code; one that doesn't exist reads as -1.
class Decoder {
  public:
    bool set(const Codes& codes) {
        codes_ = &codes;
        for (uint16_t& entry : short_) entry = 0;
        int32_t code = 0, place = 0;
        for (int length = 1; length <= 16; ++length) {
            first_[length] = code;
            place_[length] = place;
            for (int i = 0; i < codes.counts[length]; ++i, ++code, ++place) {
                if (code >= 1 << length) return false;
                const int spare = kShort - length;
                for (int32_t j = 0; spare >= 0 && j < 1 << spare; ++j) {
                    short_[(code << spare) + j] = uint16_t(length << 8 | codes.symbols[place]);
                }
            }
            code <<= 1;
        }
        return true;
    }

    int read(BitReader& in) const {
        const uint32_t ahead = in.peek(16);
        const uint16_t entry = short_[ahead >> (16 - kShort)];
        if (entry) {
            in.skip(entry >> 8);
            return entry & 255;
        }
        for (int length = kShort + 1; length <= 16; ++length) {
            const int32_t offset = int32_t(ahead >> (16 - length)) - first_[length];
            if (offset >= 0 && offset < codes_->counts[length]) {
                in.skip(length);
                return codes_->symbols[place_[length] + offset];
            }
        }
        return -1;
    }

  private:
    static constexpr int kShort = 9;
    const Codes* codes_ = nullptr;
    uint16_t short_[1 << kShort];
    int32_t first_[17], place_[17];
};

// Writes into memory of a fixed size and goes on counting when it is full.
struct BitWriter {
    uint8_t* data;
    int64_t capacity;
    int64_t size = 0;
    uint64_t bits = 0;
    int count = 0;

    BitWriter(uint8_t* memory, int64_t nbytes) : data(memory), capacity(nbytes) {}

    bool full() const { return size > capacity; }

    void byte(uint32_t value) {
        if (size < capacity) data[size] = uint8_t(value);
        ++size;
    }

    void word(uint32_t value) {
        byte(value >> 8);
        byte(value & 255);
    }

    void marker(int kind) { word(0xFF00 | kind); }

    void put(uint32_t value, int length) {
        bits = bits << length | (value & ((uint64_t(1) << length) - 1));
        count += length;
        if (count >= 32) {
            count -= 32;
            four(uint32_t(bits >> count));
        }
    }

    // Fills the last byte with ones, as T.81 asks, and writes what there is.
    void align() {
        put(0xFF, (8 - count % 8) % 8);
        while (count) {
            count -= 8;
            stuffed(uint32_t(bits >> count) & 255);
        }
        bits = 0;
    }

  private:
    void stuffed(uint32_t value) {
        byte(value);
        if (value == 255) byte(0);
    }

    void four(uint32_t value) {
        if (size + 4 <= capacity && !has_255(value)) {
            for (int i = 0; i < 4; ++i) data[size + i] = uint8_t(value >> (24 - 8 * i));
            size += 4;
            return;
        }
        for (int shift = 24; shift >= 0; shift -= 8) stuffed(value >> shift & 255);
    }
};

}  // namespace cvcli::jpeg
