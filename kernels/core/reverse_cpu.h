// Pixels in reverse order, the bytes of each kept: dst gets src's last pixel first.
#pragma once

#include "core/simd_cpu.h"

namespace cvcli {

template <int P>
void reverse_scalar(uint8_t* dst, const uint8_t* src, int64_t count) {
    const uint8_t* from = src + count * P;
    for (int64_t x = 0; x < count; ++x) std::memcpy(dst + x * P, from -= P, P);
}

#if CVCLI_SIMD == 0

template <int P>
void reverse_pixels(uint8_t* dst, const uint8_t* src, int64_t count) {
    reverse_scalar<P>(dst, src, count);
}

#else

// Byte j of a reversed block whose source ends where the vector ends. Bytes past the whole pixels
// hold anything: the next block overwrites them.
template <int P>
struct ReverseOrder {
    alignas(kVectorBytes) uint8_t at[kVectorBytes];
    constexpr ReverseOrder() : at() {
        for (int j = 0; j < kVectorBytes; ++j) {
            const int from = kVectorBytes - P - j / P * P + j % P;
            at[j] = static_cast<uint8_t>(from < 0 ? 0 : from);
        }
    }
};

template <int P>
void reverse_pixels(uint8_t* dst, const uint8_t* src, int64_t count) {
    constexpr int step = kVectorBytes / P * P;
    static constexpr ReverseOrder<P> order;
    const Vector at = load_vector(order.at);
    int64_t left = count * P;
    for (; left >= kVectorBytes; left -= step, dst += step) {
        store_vector(dst, permute(load_vector(src + left - kVectorBytes), at));
    }
    reverse_scalar<P>(dst, src, left / P);
}

#endif

}  // namespace cvcli
