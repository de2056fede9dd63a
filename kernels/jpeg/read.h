// Reads the quantised coefficients of sequential and progressive JPEG files.
#pragma once

#include <cstdlib>

#include "bits.h"

namespace cvcli::jpeg {

class Reader {
  public:
    // The frame must have the size that the caller knows, and has found not to be too large.
    Reader(const uint8_t* data, int64_t size, Frame& frame, int32_t width, int32_t height)
        : at_(data), end_(data + size), frame_(frame), width_(width), height_(height) {}

    // Returns 0 or a `Fault`. The frame's memory is the caller's to free.
    int read() {
        if (end_ - at_ < 2 || at_[0] != 0xFF || at_[1] != 0xD8) return kCorrupt;
        at_ += 2;
        for (;;) {
            const int kind = next_marker();
            if (kind < 0) return kTruncated;
            if (kind == 0xD9) return frame_.scans && is_whole() ? 0 : kCorrupt;
            if (kind == 0x01 || (kind >= 0xD0 && kind <= 0xD8)) continue;
            if (end_ - at_ < 2) return kTruncated;
            const int64_t length = at_[0] << 8 | at_[1];
            if (length < 2) return kCorrupt;
            if (length > end_ - at_) return kTruncated;
            body_ = at_ + 2;
            stop_ = at_ += length;
            if (const int fault = segment(kind)) return fault;
        }
    }

  private:
    const uint8_t *at_, *end_;
    const uint8_t *body_ = nullptr, *stop_ = nullptr;
    Frame& frame_;
    const int32_t width_, height_;
    Codes codes_[2][kMostComponents] = {};
    Decoder dc_[kMostComponents], ac_[kMostComponents];
    int interval_ = 0;
    int32_t last_dc_[kMostComponents] = {};
    uint32_t run_ = 0;  // blocks left of a run of ends of band
    // Lowest bit known of each coefficient, and one that says that none is.
    static constexpr int8_t kUnknown = 14;
    int8_t known_[kMostComponents][kBlock];

    int64_t left() const { return stop_ - body_; }

    // The kind of the next marker, and past it; -1 if there is none.
    int next_marker() {
        for (; end_ - at_ >= 2; ++at_) {
            if (at_[0] != 0xFF || at_[1] == 0 || at_[1] == 0xFF) continue;
            at_ += 2;
            return at_[-1];
        }
        return -1;
    }

    int segment(int kind) {
        if (kind == 0xDB) return quantisation();
        if (kind == 0xC4) return code_tables();
        if (kind == 0xDA) return scan();
        if (kind == 0xDD) {
            if (left() != 2) return kCorrupt;
            interval_ = body_[0] << 8 | body_[1];
            return 0;
        }
        if (kind >= 0xC0 && kind <= 0xC2) return frame(kind);
        // Lossless, hierarchical and arithmetic ones.
        if (kind >= 0xC3 && kind <= 0xCF && kind != 0xC8) return kUnsupported;
        return kind == 0xDC ? kUnsupported : 0;
    }

    int quantisation() {
        while (left() > 0) {
            const bool wide = body_[0] >> 4;
            const int number = body_[0] & 15;
            ++body_;
            // A table that changes between scans is two tables of one number.
            if (number > 3 || left() < kBlock * (wide ? 2 : 1) || frame_.scans) return kCorrupt;
            QuantTable& table = frame_.tables[number];
            table.wide = wide;
            table.defined = true;
            for (uint16_t& value : table.values) {
                value = wide ? uint16_t(body_[0] << 8 | body_[1]) : body_[0];
                body_ += wide ? 2 : 1;
            }
        }
        return 0;
    }

    int code_tables() {
        while (left() > 0) {
            if (left() < 17) return kCorrupt;
            const int kind = body_[0] >> 4, number = body_[0] & 15;
            if (kind > 1 || number > 3) return kCorrupt;
            Codes& codes = codes_[kind][number];
            codes.defined = true;
            for (int length = 1; length <= 16; ++length) codes.counts[length] = body_[length];
            const int size = codes.size();
            body_ += 17;
            if (size > 256 || size > left()) return kCorrupt;
            for (int i = 0; i < size; ++i) codes.symbols[i] = body_[i];
            body_ += size;
            Decoder& decoder = (kind ? ac_ : dc_)[number];
            if (!decoder.set(codes)) return kCorrupt;
        }
        return 0;
    }

    int frame(int kind) {
        if (frame_.count || left() < 6) return kCorrupt;
        frame_.marker = uint8_t(kind);
        frame_.precision = body_[0];
        frame_.height = body_[1] << 8 | body_[2];
        frame_.width = body_[3] << 8 | body_[4];
        const int count = body_[5];
        body_ += 6;
        if (frame_.precision != 8 && frame_.precision != 12) return kUnsupported;
        if (count > kMostComponents || frame_.height == 0) return kUnsupported;
        if (count < 1 || frame_.width == 0 || left() < 3 * count) return kCorrupt;
        if (frame_.width != width_ || frame_.height != height_) return kCorrupt;
        frame_.count = count;
        for (int i = 0; i < count; ++i, body_ += 3) {
            const int h = body_[1] >> 4, v = body_[1] & 15;
            if (h < 1 || h > 4 || v < 1 || v > 4 || body_[2] > 3) return kCorrupt;
            Component& part = frame_.components[i];
            part.id = body_[0];
            part.table = body_[2];
            // Of one component alone a unit is a block, whatever its factors.
            part.h = count == 1 ? 1 : h;
            part.v = count == 1 ? 1 : v;
        }
        return prepare();
    }

    int prepare() {
        frame_.measure();
        for (int i = 0; i < frame_.count; ++i) {
            Component& part = frame_.components[i];
            const size_t blocks = size_t(part.across) * size_t(part.down);
            part.coefficients = static_cast<int16_t*>(std::calloc(blocks, 2 * kBlock));
            if (!part.coefficients) return kNoMemory;
            for (int8_t& bit : known_[i]) bit = kUnknown;
        }
        frame_.scan = static_cast<Scan*>(std::calloc(kMostScans, sizeof(Scan)));
        return frame_.scan ? 0 : kNoMemory;
    }

    int scan() {
        if (!frame_.count || left() < 1) return kCorrupt;
        if (frame_.scans == kMostScans) return kUnsupported;
        Scan& scan = frame_.scan[frame_.scans];
        scan.count = *body_++;
        if (scan.count < 1 || scan.count > frame_.count) return kCorrupt;
        if (left() < 2 * scan.count + 3) return kCorrupt;
        for (int i = 0; i < scan.count; ++i, body_ += 2) {
            int found = 0;
            while (found < frame_.count && frame_.components[found].id != body_[0]) ++found;
            if (found == frame_.count) return kCorrupt;
            for (int j = 0; j < i; ++j) {
                if (scan.component[j] == found) return kCorrupt;
            }
            scan.component[i] = uint8_t(found);
            scan.dc[i] = body_[1] >> 4;
            scan.ac[i] = body_[1] & 15;
            if (scan.dc[i] > 3 || scan.ac[i] > 3) return kCorrupt;
        }
        scan.first = body_[0], scan.last = body_[1];
        scan.high = body_[2] >> 4, scan.low = body_[2] & 15;
        scan.interval = interval_;
        if (!frame_.progressive()) scan.first = 0, scan.last = 63, scan.high = scan.low = 0;
        if (!is_next(scan) || !has_codes(scan)) return kCorrupt;
        keep_codes(scan);
        ++frame_.scans;
        return coefficients(scan);
    }

    // Whether a scan brings what is still unknown, and notes that it is known.
    bool is_next(const Scan& scan) {
        if (scan.last > 63 || scan.first > scan.last || scan.low >= kUnknown) return false;
        if (frame_.progressive()) {
            if (scan.first == 0 ? scan.last != 0 : scan.count != 1) return false;
            if (scan.high && scan.high != scan.low + 1) return false;
        }
        int units = 0;
        for (int i = 0; i < scan.count; ++i) {
            const Component& part = frame_.components[scan.component[i]];
            units += part.h * part.v;
            for (int k = scan.first; k <= scan.last; ++k) {
                int8_t& bit = known_[scan.component[i]][k];
                if (bit != (scan.high ? scan.high : kUnknown)) return false;
                bit = int8_t(scan.low);
            }
        }
        return scan.count == 1 || units <= 10;
    }

    bool is_whole() const {
        for (int i = 0; i < frame_.count; ++i) {
            if (!frame_.tables[frame_.components[i].table].defined) return false;
            for (const int8_t bit : known_[i]) {
                if (bit != 0) return false;
            }
        }
        return true;
    }

    bool has_codes(const Scan& scan) const {
        for (int i = 0; i < scan.count; ++i) {
            const bool needs_dc = scan.first == 0 && !scan.high;
            if (needs_dc && !codes_[0][scan.dc[i]].defined) return false;
            if (scan.last > 0 && !codes_[1][scan.ac[i]].defined) return false;
        }
        return true;
    }

    void keep_codes(Scan& scan) {
        scan.complete_codes = !frame_.progressive() && frame_.precision == 8;
        if (!scan.complete_codes) return;
        for (int kind = 0; kind < 2; ++kind) {
            for (int i = 0; i < scan.count; ++i) {
                const int number = kind ? scan.ac[i] : scan.dc[i];
                const Codes& codes = scan.codes[4 * kind + number] = codes_[kind][number];
                scan.complete_codes &= is_complete(codes, kind);
            }
        }
    }

    // Whether a code has all lengths of 8-bit DC differences, or all runs and lengths of AC.
    static bool is_complete(const Codes& codes, int kind) {
        bool has[256] = {};
        const int size = codes.size();
        for (int i = 0; i < size; ++i) has[codes.symbols[i]] = true;
        if (kind == 0) {
            for (int length = 0; length <= 11; ++length) {
                if (!has[length]) return false;
            }
            return true;
        }
        for (int run = 0; run < 16; ++run) {
            for (int length = 1; length <= 10; ++length) {
                if (!has[run << 4 | length]) return false;
            }
        }
        return has[0] && has[0xF0];
    }

    int coefficients(const Scan& scan) {
        BitReader in(at_, end_);
        int fault = kCorrupt;
        const auto boundary = [&](int64_t unit) {
            if (in.overrun()) {
                // Before a marker there is too little data, at the end of the file too little file.
                fault = in.at >= end_ - 1 ? kTruncated : kCorrupt;
                return false;
            }
            const bool restarts = scan.interval && unit && unit % scan.interval == 0;
            if (unit && !restarts) return true;
            for (int32_t& value : last_dc_) value = 0;
            run_ = 0;
            if (!restarts || in.restart(int(unit / scan.interval - 1) & 7)) return true;
            fault = in.at >= end_ - 1 ? kTruncated : kCorrupt;
            return false;
        };
        const auto visit = [&](int i, int64_t y, int64_t x) {
            int16_t* const block = frame_.components[scan.component[i]].block(y, x);
            if (!frame_.progressive()) return sequential(in, scan, i, block);
            if (scan.first == 0) return dc(in, scan, i, block);
            return scan.high ? refine(in, scan, block) : band(in, scan, block);
        };
        if (!walk(frame_, scan, visit, boundary)) return fault;
        at_ = in.at;
        if (!in.overrun()) return 0;
        return in.at >= end_ - 1 ? kTruncated : kCorrupt;
    }

    bool sequential(BitReader& in, const Scan& scan, int i, int16_t* block) {
        if (!difference(in, scan, i)) return false;
        block[0] = int16_t(last_dc_[i]);
        const Decoder& ac = ac_[scan.ac[i]];
        for (int k = 1; k < kBlock; ++k) {
            const int symbol = ac.read(in);
            if (symbol < 0) return false;
            const int length = symbol & 15;
            if (length == 0) {
                if (symbol != 0xF0) return symbol == 0;
                k += 15;
                continue;
            }
            k += symbol >> 4;
            if (k >= kBlock) return false;
            block[k] = int16_t(in.extended(length));
        }
        return true;
    }

    bool difference(BitReader& in, const Scan& scan, int i) {
        const int length = dc_[scan.dc[i]].read(in);
        if (length < 0 || length > 15) return false;
        last_dc_[i] = int16_t(last_dc_[i] + in.extended(length));
        return true;
    }

    bool dc(BitReader& in, const Scan& scan, int i, int16_t* block) {
        if (scan.high) {
            if (in.take(1)) block[0] = int16_t(block[0] | 1 << scan.low);
            return true;
        }
        if (!difference(in, scan, i)) return false;
        block[0] = int16_t(last_dc_[i] * (1 << scan.low));
        return true;
    }

    bool band(BitReader& in, const Scan& scan, int16_t* block) {
        if (run_) {
            --run_;
            return true;
        }
        const Decoder& ac = ac_[scan.ac[0]];
        for (int k = scan.first; k <= scan.last; ++k) {
            const int symbol = ac.read(in);
            if (symbol < 0) return false;
            const int length = symbol & 15, run = symbol >> 4;
            if (length == 0 && run < 15) {
                run_ = (1u << run) - 1 + in.take(run);
                return true;
            }
            k += run;
            if (length == 0) continue;
            if (k > scan.last) return false;
            block[k] = int16_t(in.extended(length) * (1 << scan.low));
        }
        return true;
    }

    // T.81 G.1.2.3: bits for what is known not to be zero, and new ones of the lowest bit.
    bool refine(BitReader& in, const Scan& scan, int16_t* block) {
        const int bit = 1 << scan.low;
        const auto correct = [&](int16_t& value) {
            if (in.take(1) && !((value < 0 ? -value : value) & bit)) {
                value = int16_t(value < 0 ? value - bit : value + bit);
            }
        };
        int k = scan.first;
        const Decoder& ac = ac_[scan.ac[0]];
        for (; !run_ && k <= scan.last; ++k) {
            const int symbol = ac.read(in);
            if (symbol < 0 || (symbol & 15) > 1) return false;
            int run = symbol >> 4;
            int fresh = 0;
            if (symbol & 15) {
                fresh = in.take(1) ? bit : -bit;
            } else if (run < 15) {
                run_ = (1u << run) + in.take(run);
                break;
            }
            for (; k <= scan.last; ++k) {
                if (block[k]) {
                    correct(block[k]);
                } else if (run-- == 0) {
                    break;
                }
            }
            if (!fresh) continue;
            if (k > scan.last) return false;
            block[k] = int16_t(fresh);
        }
        if (!run_) return true;
        for (; k <= scan.last; ++k) {
            if (block[k]) correct(block[k]);
        }
        --run_;
        return true;
    }
};

}  // namespace cvcli::jpeg
