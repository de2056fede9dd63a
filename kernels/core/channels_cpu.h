// Pixels whose channels only change places, as one permutation of bytes a vector.
#pragma once

#include "core/pixels.h"
#include "core/simd_cpu.h"

namespace cvcli {

template <class P, class Q, class Step>
Q moved_channels(const Step& step, const P& pixel) {
    Q out;
    for (int n = 0; n < Q::kChannels; ++n) {
        const int c = step.channel_of(n);
        out.v[n] = c < 0 ? static_cast<typename Q::Sample>(kWhite<typename Q::Sample>) : pixel.v[c];
    }
    return out;
}

#if CVCLI_SIMD > 0

// What byte j of a vector of results takes: byte at[j] of the source where keep[j], else fill[j].
struct ByteOrder {
    alignas(64) uint8_t at[kVectorBytes];
    alignas(64) uint8_t keep[kVectorBytes];
    alignas(64) uint8_t fill[kVectorBytes];
};

template <class P, class Q, class Step>
ByteOrder byte_order(const Step& step) {
    constexpr int size = sizeof(typename Q::Sample);
    ByteOrder order = {};
    const typename Q::Sample white = static_cast<typename Q::Sample>(kWhite<typename Q::Sample>);
    for (int j = 0; j < kVectorBytes; ++j) {
        const int pixel = j / int(sizeof(Q)), within = j % int(sizeof(Q));
        const int c = step.channel_of(within / size);
        const int from = pixel * int(sizeof(P)) + c * size + within % size;
        const bool kept = c >= 0 && from < kVectorBytes;
        order.at[j] = static_cast<uint8_t>(kept ? from : 0);
        order.keep[j] = kept ? 0xff : 0;
        if (c < 0)
            std::memcpy(&order.fill[j], reinterpret_cast<const uint8_t*>(&white) + j % size, 1);
    }
    return order;
}

// The last pixels are left: a vector may not reach past the end of either row. Returns how many.
template <class P, class Q, class Step>
int64_t move_vectors(const Step& step, const uint8_t* from, uint8_t* to, int64_t width) {
    constexpr int pixels = kVectorBytes / int(larger(sizeof(P), sizeof(Q)));
    const ByteOrder order = byte_order<P, Q>(step);
    const Vector at = load_vector(order.at), keep = load_vector(order.keep);
    const Vector fill = load_vector(order.fill);
    const int64_t last = width - kVectorBytes / int64_t(smaller(sizeof(P), sizeof(Q))) - 1;
    int64_t x = 0;
    for (; x <= last; x += pixels) {
        const Vector bytes = permute(load_vector(from + x * int64_t{sizeof(P)}), at);
        store_vector(to + x * int64_t{sizeof(Q)}, merged(bytes, keep, fill));
    }
    return x;
}

#else

template <class P, class Q, class Step>
int64_t move_vectors(const Step&, const uint8_t*, uint8_t*, int64_t) {
    return 0;
}

#endif

template <class P, class Q, class Step>
void move_channels(const Step& step, const uint8_t* from, uint8_t* to, int64_t width) {
    for (int64_t x = move_vectors<P, Q>(step, from, to, width); x < width; ++x) {
        P pixel;
        std::memcpy(&pixel, from + x * int64_t{sizeof pixel}, sizeof pixel);
        const Q out = moved_channels<P, Q>(step, pixel);
        std::memcpy(to + x * int64_t{sizeof out}, &out, sizeof out);
    }
}

}  // namespace cvcli
