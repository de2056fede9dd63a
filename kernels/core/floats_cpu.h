// A vector of floats as wide as the build has them; the same operations on each, rounded alike.
#pragma once

#include "core/simd_cpu.h"
#include "core/stencil.h"

namespace cvcli {

#if CVCLI_SIMD == 2

struct Floats {
    static constexpr int kCount = 16;
    __m512 v;
};
inline Floats load_floats(const float* from) {
    return {_mm512_loadu_ps(from)};
}
inline void store_floats(float* to, Floats a) {
    _mm512_storeu_ps(to, a.v);
}
inline Floats all_floats(float a) {
    return {_mm512_set1_ps(a)};
}
inline Floats operator+(Floats a, Floats b) {
    return {_mm512_add_ps(a.v, b.v)};
}
inline Floats operator*(Floats a, Floats b) {
    return {_mm512_mul_ps(a.v, b.v)};
}
inline Floats fused(Floats a, Floats b, Floats c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

inline Floats operator-(Floats a, Floats b) {
    return {_mm512_sub_ps(a.v, b.v)};
}
inline Floats operator/(Floats a, Floats b) {
    return {_mm512_div_ps(a.v, b.v)};
}
inline Floats magnitude(Floats a) {
    return {_mm512_abs_ps(a.v)};
}
inline Floats whole(Floats a) {
    return {_mm512_cvtepi32_ps(_mm512_cvttps_epi32(a.v))};
}
inline Floats look_up(const float* table, Floats index) {
    return {_mm512_i32gather_ps(_mm512_cvttps_epi32(index.v), table, 4)};
}
inline Floats where_below(Floats a, Floats b, Floats value) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), value.v)};
}

#elif CVCLI_SIMD == 1

struct Floats {
    static constexpr int kCount = 8;
    __m256 v;
};
inline Floats load_floats(const float* from) {
    return {_mm256_loadu_ps(from)};
}
inline void store_floats(float* to, Floats a) {
    _mm256_storeu_ps(to, a.v);
}
inline Floats all_floats(float a) {
    return {_mm256_set1_ps(a)};
}
inline Floats operator+(Floats a, Floats b) {
    return {_mm256_add_ps(a.v, b.v)};
}
inline Floats operator*(Floats a, Floats b) {
    return {_mm256_mul_ps(a.v, b.v)};
}
inline Floats fused(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}

inline Floats operator-(Floats a, Floats b) {
    return {_mm256_sub_ps(a.v, b.v)};
}
inline Floats operator/(Floats a, Floats b) {
    return {_mm256_div_ps(a.v, b.v)};
}
inline Floats magnitude(Floats a) {
    return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}
inline Floats whole(Floats a) {
    return {_mm256_cvtepi32_ps(_mm256_cvttps_epi32(a.v))};
}
inline Floats look_up(const float* table, Floats index) {
    return {_mm256_i32gather_ps(table, _mm256_cvttps_epi32(index.v), 4)};
}
inline Floats where_below(Floats a, Floats b, Floats value) {
    return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ), value.v)};
}

#else

struct Floats {
    static constexpr int kCount = 4;
    float v[kCount];
};
inline Floats load_floats(const float* from) {
    Floats a;
    std::memcpy(&a, from, sizeof a);
    return a;
}
inline void store_floats(float* to, Floats a) {
    std::memcpy(to, &a, sizeof a);
}
inline Floats all_floats(float a) {
    return {{a, a, a, a}};
}
inline Floats operator+(Floats a, Floats b) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] += b.v[i];
    return a;
}
inline Floats operator*(Floats a, Floats b) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] *= b.v[i];
    return a;
}
inline Floats fused(Floats a, Floats b, Floats c) {
    for (int i = 0; i < Floats::kCount; ++i) c.v[i] = add_weighted<uint8_t>(c.v[i], a.v[i], b.v[i]);
    return c;
}

inline Floats operator-(Floats a, Floats b) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] -= b.v[i];
    return a;
}
inline Floats operator/(Floats a, Floats b) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] /= b.v[i];
    return a;
}
inline Floats magnitude(Floats a) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] = a.v[i] < 0.0f ? -a.v[i] : a.v[i];
    return a;
}
// Towards 0; values are those of an int32_t.
inline Floats whole(Floats a) {
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] = float(int32_t(a.v[i]));
    return a;
}
inline Floats look_up(const float* table, Floats index) {
    for (int i = 0; i < Floats::kCount; ++i) index.v[i] = table[int32_t(index.v[i])];
    return index;
}
// A value where a < b, else 0.
inline Floats where_below(Floats a, Floats b, Floats value) {
    for (int i = 0; i < Floats::kCount; ++i) value.v[i] = a.v[i] < b.v[i] ? value.v[i] : 0.0f;
    return value;
}

#endif

template <class T>
Floats add_weighted(Floats acc, Floats weight, Floats value) {
    if constexpr (sizeof(T) == 1) {
        return fused(weight, value, acc);
    } else {
        return acc + weight * value;
    }
}

}  // namespace cvcli
