// Writes coefficients as the scans of a frame say, once to count symbols and once in earnest.
#pragma once

#include "bits.h"
#include "codes.h"

namespace cvcli::jpeg {

class Writer {
  public:
    Writer(const Frame& frame, BitWriter& out) : frame_(frame), out_(out) {}

    // Returns 0 or a `Fault`; what is too long for the memory is not written, only counted.
    int write() {
        out_.marker(0xD8);
        quantisation();
        frame();
        for (int i = 0; i < frame_.scans; ++i) {
            if (const int fault = scan(frame_.scan[i], i > 0 ? &frame_.scan[i - 1] : nullptr)) {
                return fault;
            }
        }
        out_.marker(0xD9);
        return 0;
    }

  private:
    const Frame& frame_;
    BitWriter& out_;
    const Scan* scan_ = nullptr;
    bool counting_ = false, missing_ = false;
    int64_t counts_[2][kMostComponents][256];
    Encoder encoders_[2][kMostComponents];
    int32_t last_dc_[kMostComponents] = {};
    // Ends of band that wait to be written as one, with the bits that correct their blocks.
    static constexpr int kMostWaiting = 1001;
    uint32_t run_ = 0;
    int waiting_ = 0;
    uint8_t corrections_[kMostWaiting];

    void quantisation() {
        bool done[4] = {};
        for (int i = 0; i < frame_.count; ++i) {
            const int number = frame_.components[i].table;
            if (done[number]) continue;
            done[number] = true;
            const QuantTable& table = frame_.tables[number];
            out_.marker(0xDB);
            out_.word(3 + kBlock * (table.wide ? 2 : 1));
            out_.byte(uint32_t(table.wide) << 4 | uint32_t(number));
            for (const uint16_t value : table.values) {
                if (table.wide) {
                    out_.word(value);
                } else {
                    out_.byte(value);
                }
            }
        }
    }

    void frame() {
        out_.marker(frame_.marker);
        out_.word(uint32_t(8 + 3 * frame_.count));
        out_.byte(frame_.precision);
        out_.word(uint32_t(frame_.height));
        out_.word(uint32_t(frame_.width));
        out_.byte(uint32_t(frame_.count));
        for (int i = 0; i < frame_.count; ++i) {
            const Component& part = frame_.components[i];
            out_.byte(part.id);
            out_.byte(uint32_t(part.h << 4 | part.v));
            out_.byte(part.table);
        }
    }

    int scan(const Scan& scan, const Scan* before) {
        scan_ = &scan;
        bool used[2][kMostComponents] = {};
        for (int i = 0; i < scan.count; ++i) {
            if (scan.first == 0 && !scan.high) used[0][scan.dc[i]] = true;
            if (scan.last > 0) used[1][scan.ac[i]] = true;
        }
        if (!scan.complete_codes) count();
        for (int number = 0; number < kMostComponents; ++number) {
            for (int kind = 0; kind < 2; ++kind) {
                if (!used[kind][number]) continue;
                const Codes codes = scan.complete_codes ? scan.codes[4 * kind + number]
                                                        : shortest_codes(counts_[kind][number]);
                encoders_[kind][number].set(codes);
                code_table(kind, number, codes);
            }
        }
        if (scan.interval != (before ? before->interval : 0)) {
            out_.marker(0xDD);
            out_.word(4);
            out_.word(uint32_t(scan.interval));
        }
        head(scan);
        blocks();
        return missing_ ? kCorrupt : 0;
    }

    void count() {
        for (auto& kind : counts_) {
            for (auto& table : kind) {
                for (int64_t& count : table) count = 0;
            }
        }
        counting_ = true;
        blocks();
        counting_ = false;
    }

    void code_table(int kind, int number, const Codes& codes) {
        const int size = codes.size();
        out_.marker(0xC4);
        out_.word(uint32_t(2 + 17 + size));
        out_.byte(uint32_t(kind << 4 | number));
        for (int length = 1; length <= 16; ++length) out_.byte(codes.counts[length]);
        for (int i = 0; i < size; ++i) out_.byte(codes.symbols[i]);
    }

    void head(const Scan& scan) {
        out_.marker(0xDA);
        out_.word(uint32_t(6 + 2 * scan.count));
        out_.byte(uint32_t(scan.count));
        for (int i = 0; i < scan.count; ++i) {
            out_.byte(frame_.components[scan.component[i]].id);
            out_.byte(uint32_t(scan.dc[i] << 4 | scan.ac[i]));
        }
        out_.byte(uint32_t(scan.first));
        out_.byte(uint32_t(scan.last));
        out_.byte(uint32_t(scan.high << 4 | scan.low));
    }

    void blocks() {
        const Scan& scan = *scan_;
        const auto boundary = [&](int64_t unit) {
            const bool restarts = scan.interval && unit && unit % scan.interval == 0;
            if (unit && !restarts) return true;
            end_run();
            for (int32_t& value : last_dc_) value = 0;
            if (restarts && !counting_) {
                out_.align();
                out_.marker(0xD0 + (int(unit / scan.interval - 1) & 7));
            }
            return true;
        };
        const auto visit = [&](int i, int64_t y, int64_t x) {
            const Component& part = frame_.components[scan.component[i]];
            // What is outside has no pixels: it costs least as a block that changes nothing.
            const bool outside = y >= part.rows || x >= part.columns;
            const int16_t* const block = part.block(y, x);
            if (!frame_.progressive()) {
                sequential(i, outside, block);
            } else if (scan.first == 0) {
                dc(i, outside, block);
            } else if (scan.high) {
                refine(block);
            } else {
                band(block);
            }
            return true;
        };
        walk(frame_, scan, visit, boundary);
        end_run();
        if (!counting_) out_.align();
    }

    void symbol(int kind, int number, int value) {
        if (counting_) {
            ++counts_[kind][number][value];
            return;
        }
        const Encoder& encoder = encoders_[kind][number];
        missing_ |= encoder.length[value] == 0;
        out_.put(encoder.code[value], encoder.length[value]);
    }

    void bits(uint32_t value, int length) {
        if (!counting_ && length) out_.put(value, length);
    }

    // The bits of a value of a length: negative ones less one.
    static uint32_t shortened(int32_t value) { return uint32_t(value < 0 ? value - 1 : value); }
    static uint32_t size_of(int32_t value) { return uint32_t(value < 0 ? -value : value); }

    void difference(int i, int32_t value) {
        const int32_t change = value - last_dc_[i];
        last_dc_[i] = value;
        const int length = bits_of(size_of(change));
        symbol(0, scan_->dc[i], length);
        bits(shortened(change), length);
    }

    void sequential(int i, bool outside, const int16_t* block) {
        difference(i, outside ? last_dc_[i] : block[0]);
        const int number = scan_->ac[i];
        const int end = outside ? 0 : end_of(block);
        int zeros = 0;
        for (int k = 1; k < end; ++k) {
            if (!block[k]) {
                ++zeros;
                continue;
            }
            for (; zeros > 15; zeros -= 16) symbol(1, number, 0xF0);
            const int length = bits_of(size_of(block[k]));
            symbol(1, number, zeros << 4 | length);
            bits(shortened(block[k]), length);
            zeros = 0;
        }
        if (end < kBlock || zeros) symbol(1, number, 0);
    }

    // A place behind which a block holds zeros only.
    static int end_of(const int16_t* block) {
        int end = kBlock;
        for (uint64_t four = 0; end > 0; end -= 4) {
            std::memcpy(&four, block + end - 4, sizeof four);
            if (four) break;
        }
        return end;
    }

    void dc(int i, bool outside, const int16_t* block) {
        if (scan_->high) {
            bits(outside ? 0 : uint32_t(block[0] >> scan_->low) & 1, 1);
        } else {
            difference(i, outside ? last_dc_[i] : block[0] >> scan_->low);
        }
    }

    void band(const int16_t* block) {
        int zeros = 0;
        for (int k = scan_->first; k <= scan_->last; ++k) {
            const uint32_t size = size_of(block[k]) >> scan_->low;
            if (!size) {
                ++zeros;
                continue;
            }
            end_run();
            for (; zeros > 15; zeros -= 16) symbol(1, scan_->ac[0], 0xF0);
            const int length = bits_of(size);
            symbol(1, scan_->ac[0], zeros << 4 | length);
            bits(block[k] < 0 ? ~size : size, length);
            zeros = 0;
        }
        if (zeros && ++run_ == 0x7FFF) end_run();
    }

    // T.81 G.1.2.3: what is new in this bit, with the bits of what was known between.
    void refine(const int16_t* block) {
        uint32_t size[kBlock];
        int last_fresh = 0;
        for (int k = scan_->first; k <= scan_->last; ++k) {
            size[k] = size_of(block[k]) >> scan_->low;
            if (size[k] == 1) last_fresh = k;
        }
        int zeros = 0, own = waiting_;  // this block's corrections are those from `own` on
        for (int k = scan_->first; k <= scan_->last; ++k) {
            if (size[k] == 0) {
                ++zeros;
                continue;
            }
            while (zeros > 15 && k <= last_fresh) {
                end_run(own);
                symbol(1, scan_->ac[0], 0xF0);
                zeros -= 16;
                correct(0);
                own = 0;
            }
            if (size[k] > 1) {
                corrections_[waiting_++] = uint8_t(size[k] & 1);
                continue;
            }
            end_run(own);
            symbol(1, scan_->ac[0], zeros << 4 | 1);
            bits(block[k] < 0 ? 0 : 1, 1);
            correct(0);
            own = zeros = 0;
        }
        if (!zeros && waiting_ == own) return;
        if (++run_ == 0x7FFF || waiting_ > kMostWaiting - kBlock) end_run();
    }

    // Writes the ends of band that wait, with the first `count` corrections; all by default.
    void end_run(int count = -1) {
        if (count < 0) count = waiting_;
        if (run_) {
            const int length = bits_of(run_) - 1;
            symbol(1, scan_->ac[0], length << 4);
            bits(run_, length);
            run_ = 0;
        }
        for (int i = 0; i < count; ++i) bits(corrections_[i], 1);
        for (int i = count; i < waiting_; ++i) corrections_[i - count] = corrections_[i];
        waiting_ -= count;
    }

    void correct(int from) {
        for (int i = from; i < waiting_; ++i) bits(corrections_[i], 1);
        waiting_ = from;
    }
};

}  // namespace cvcli::jpeg
