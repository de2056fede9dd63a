// Warps on the CPU: blocks of pixels that lie wholly inside the source, outside it, or neither.
#pragma once

#include "core/warp_cpu.h"
#include "core/warp_gray_cpu.h"

namespace cvcli {

// Pixels that a vector load at a tap may take beyond the tap itself.
constexpr int32_t kSlack = 2;

#if CVCLI_SIMD > 0

// Four neighbours of RGB or RGBA bytes: a tap and the one to its right become pairs of 16 bits.
template <int C>
__m128i pair_sums(const uint8_t* from, __m128i order, uint32_t weights) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m128i pairs = _mm_shuffle_epi8(bytes, order);
    return _mm_madd_epi16(pairs, _mm_set1_epi32(static_cast<int>(weights)));
}

template <int C>
__m128i pair_order() {
    const char n = -1;
    if constexpr (C == 3) return _mm_setr_epi8(0, n, 3, n, 1, n, 4, n, 2, n, 5, n, n, n, n, n);
    return _mm_setr_epi8(0, n, 4, n, 1, n, 5, n, 2, n, 6, n, 3, n, 7, n);
}

// Sums in units of 2^-14, rounded half to even.
inline __m128i rounded(__m128i sums) {
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(sums, 14), _mm_set1_epi32(1));
    return _mm_srli_epi32(_mm_add_epi32(_mm_add_epi32(sums, _mm_set1_epi32(8191)), odd), 14);
}

template <int C>
__m128i linear_bytes(const WarpSource<uint8_t, C>& source, const Place& place, __m128i order) {
    const FixedWeights f = fixed_weights(place);
    const uint8_t* from = source.at(place.y, place.x);
    const __m128i above = pair_sums<C>(from, order, f.w[0][0] | f.w[0][1] << 16);
    const __m128i below = pair_sums<C>(from + source.pitch, order, f.w[1][0] | f.w[1][1] << 16);
    return rounded(_mm_add_epi32(above, below));
}

// Whole groups of four pixels of a block; returns how many pixels it made.
template <int C>
int32_t linear_groups(const WarpSource<uint8_t, C>& source, const Places& places, uint8_t* to) {
    const char n = -1;
    const __m128i order = pair_order<C>();
    const __m128i packing = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, n, n, n, n);
    int32_t i = 0;
    for (; i + 4 <= places.count; i += 4, to += 4 * C) {
        __m128i p[4];
        for (int k = 0; k < 4; ++k) p[k] = linear_bytes<C>(source, places[i + k], order);
        __m128i four = _mm_packus_epi16(_mm_packs_epi32(p[0], p[1]), _mm_packs_epi32(p[2], p[3]));
        if constexpr (C == 3) {
            alignas(16) uint8_t bytes[16];
            four = _mm_shuffle_epi8(four, packing);
            _mm_store_si128(reinterpret_cast<__m128i*>(bytes), four);
            std::memcpy(to, bytes, 12);
        } else {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to), four);
        }
    }
    return i;
}

// Four samples of a tap, the last of RGB being of no account.
template <class T>
__m128 tap_floats(const T* from) {
    if constexpr (sizeof(T) == 1) {
        int32_t word;
        std::memcpy(&word, from, 4);
        return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word)));
    } else if constexpr (sizeof(T) == 2) {
        const __m128i words = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
        return _mm_cvtepi32_ps(_mm_cvtepu16_epi32(words));
    } else {
        return _mm_loadu_ps(from);
    }
}

inline __m128 cubic_sum(__m128 a, __m128 b, __m128 c, __m128 d, const CubicWeights& f) {
    const __m128 first =
        _mm_add_ps(_mm_mul_ps(a, _mm_set1_ps(f.w[0])), _mm_mul_ps(b, _mm_set1_ps(f.w[1])));
    const __m128 second =
        _mm_add_ps(_mm_mul_ps(c, _mm_set1_ps(f.w[2])), _mm_mul_ps(d, _mm_set1_ps(f.w[3])));
    return _mm_add_ps(first, second);
}

template <class T, int C>
Pixel<T, C> linear_pixel(const WarpSource<T, C>& source, const Place& place) {
    const LinearWeights f = linear_weights(place);
    const T* above = source.at(place.y, place.x);
    const T* below = source.at(place.y + 1, place.x);
    const __m128 upper = _mm_add_ps(_mm_mul_ps(tap_floats(above), _mm_set1_ps(f.w[0][0])),
                                    _mm_mul_ps(tap_floats(above + C), _mm_set1_ps(f.w[0][1])));
    const __m128 lower = _mm_add_ps(_mm_mul_ps(tap_floats(below), _mm_set1_ps(f.w[1][0])),
                                    _mm_mul_ps(tap_floats(below + C), _mm_set1_ps(f.w[1][1])));
    alignas(16) float sums[4];
    _mm_store_ps(sums, _mm_add_ps(upper, lower));
    Pixel<T, C> out;
    for (int c = 0; c < C; ++c) out.v[c] = to_sample<T>(sums[c]);
    return out;
}

template <class T, int C>
Pixel<T, C> cubic_pixel(const WarpSource<T, C>& source, const Place& place) {
    const CubicWeights across = cubic_weights(place.fx);
    const CubicWeights down = cubic_weights(place.fy);
    __m128 rows[4];
    for (int j = 0; j < 4; ++j) {
        const T* from = source.at(place.y + j - 1, place.x - 1);
        rows[j] = cubic_sum(tap_floats(from), tap_floats(from + C), tap_floats(from + 2 * C),
                            tap_floats(from + 3 * C), across);
    }
    alignas(16) float sums[4];
    _mm_store_ps(sums, cubic_sum(rows[0], rows[1], rows[2], rows[3], down));
    Pixel<T, C> out;
    for (int c = 0; c < C; ++c) out.v[c] = to_sample<T>(sums[c]);
    return out;
}

#endif

// Single pixels of a block of bytes, moved four bytes at a time: each goes over the end of the one
// before it.
template <int C>
int32_t nearest_bytes(const WarpSource<uint8_t, C>& source, const Places& places, uint8_t* to) {
    int32_t i = 0;
    for (; i < places.count - 1; ++i) {
        std::memcpy(to + i * C, source.at(places.y[i], places.x[i]), 4);
    }
    return i;
}

// A block whose taps all lie in the source, kSlack columns of it to spare on the right.
template <int Filter, class T, int C>
void inner_block(const WarpSource<T, C>& source, const Places& places, T* to) {
    int32_t i = 0;
    if constexpr (Filter == kNearest && C == 3 && sizeof(T) == 1) {
        i = nearest_bytes<C>(source, places, to);
    }
#if CVCLI_SIMD > 0
    if constexpr (Filter == kCubic && C > 2) {
        for (; i < places.count; ++i) {
            put_pixel(to + int64_t{i} * C, cubic_pixel<T, C>(source, places[i]));
        }
    }
    if constexpr (Filter == kLinear && C > 2 && sizeof(T) == 1) {
        i = linear_groups<C>(source, places, to);
    } else if constexpr (Filter == kLinear && C > 2) {
        for (; i < places.count; ++i) {
            put_pixel(to + int64_t{i} * C, linear_pixel<T, C>(source, places[i]));
        }
    }
    if constexpr (Filter == kLinear && C == 1) i = gray_groups(source, places, to);
#endif
    for (; i < places.count; ++i) {
        put_pixel(to + int64_t{i} * C, inner_pixel<Filter, T, C>(source, places[i]));
    }
}

template <int Filter, class T, int C>
bool is_inner(const WarpSource<T, C>& source, const Places& at) {
    using R = Reach<Filter>;
    return at.low_x + R::kFirst >= 0 && at.low_y + R::kFirst >= 0 &&
           at.high_x + R::kLast + kSlack < source.width && at.high_y + R::kLast < source.height;
}

template <int Filter, class T, int C>
bool is_outer(const WarpSource<T, C>& source, const Places& at) {
    using R = Reach<Filter>;
    return at.high_x + R::kLast < 0 || at.low_x + R::kFirst >= source.width ||
           at.high_y + R::kLast < 0 || at.low_y + R::kFirst >= source.height;
}

// Among constants integers stay what they are; the float sum of weights may miss 1 by a little.
template <int Filter, class T>
constexpr bool kKeepsConstants = sizeof(T) < 4 || Filter == kNearest;

template <int Filter, class T, int C>
CVCLI_ONCE void warp_block(const WarpSource<T, C>& source, Places& places, T* to) {
    if (is_inner<Filter>(source, places)) return inner_block<Filter>(source, places, to);
    const bool constant = source.params.border == kConstant;
    if (kKeepsConstants<Filter, T> && constant && is_outer<Filter>(source, places)) {
        const Pixel<T, C> pixel = border_pixel<T, C>(source.params);
        for (int32_t i = 0; i < places.count; ++i) put_pixel(to + int64_t{i} * C, pixel);
        return;
    }
    for (int32_t i = 0; i < places.count; ++i) {
        put_pixel(to + int64_t{i} * C, outer_pixel<Filter>(source, places[i]));
    }
}

template <int Shape, int Filter, class T, int C>
void warp_row(const WarpSource<T, C>& source, int32_t row, int32_t width, T* to) {
    const Frame& frame = source.params.frame;
    Places places;
    for (int32_t x = 0; x < width; x += places.count) {
        const int32_t column = frame.x0 + x;
        places.count = smaller(kAnchor - column % kAnchor, width - x);
        if constexpr (Shape == kAffine) {
            affine_places<Filter>(source.params, column, frame.y0 + row, places);
        } else {
            perspective_places<Filter>(source.params, column, frame.y0 + row, places);
        }
        warp_block<Filter>(source, places, to + int64_t{x} * C);
    }
}

template <int Shape, int Filter, class T, int C>
void warp_share(const Share<WarpParams>& share, const WarpSource<T, C>& source,
                const Writer<T, C>& writer) {
    for (int32_t row = share.begin; row < share.end; ++row) {
        warp_row<Shape, Filter>(source, row, share.dst.width, writer.begin(row));
        writer.end(row);
    }
}

template <int Shape, class T, int C>
void warp_filter(const Share<WarpParams>& share, const WarpSource<T, C>& source,
                 const Writer<T, C>& writer) {
    const int32_t filter = share.params.filter;
    if (filter == kNearest) return warp_share<Shape, kNearest>(share, source, writer);
    if (filter == kLinear) return warp_share<Shape, kLinear>(share, source, writer);
    warp_share<Shape, kCubic>(share, source, writer);
}

// Rows that do not lie ready are made for the whole share: any row of it may need any of them.
template <class T, int C>
int32_t warp_rows(const Share<WarpParams>& share) {
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    const Writer<T, C> writer(share, scratch);
    const Frame& frame = share.params.frame;
    WarpSource<T, C> source = {share.params, nullptr, 0, frame.height, frame.width};
    if (reader.is_direct()) {
        source.base = static_cast<const uint8_t*>(share.src.data);
        source.pitch = share.src.row_pitch;
        if (scratch.failed()) return kNoMemory;
    } else {
        const int64_t samples = int64_t{frame.width} * C;
        T* rows = scratch.take<T>(samples * frame.height);
        if (scratch.failed()) return kNoMemory;
        for (int32_t y = 0; y < frame.height; ++y) {
            T* room = rows + y * samples;
            const T* row = reader.row(y, room);
            if (row != room) std::memcpy(room, row, samples * sizeof(T));
        }
        source.base = reinterpret_cast<const uint8_t*>(rows);
        source.pitch = samples * int64_t{sizeof(T)};
    }
    if (share.params.kind == kAffine) {
        warp_filter<kAffine>(share, source, writer);
    } else {
        warp_filter<kPerspective>(share, source, writer);
    }
    return 0;
}

}  // namespace cvcli
