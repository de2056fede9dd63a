// The CPU device's library: a plain C ABI, loaded with ctypes. It is built once for every SIMD
// level; the exports and their results are the same.
#include "core/map.h"
#include "core/planes_cpu.h"
#include "core/rows_cpu.h"

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <intrin.h>
#endif

namespace {

#if defined(_MSC_VER) && defined(_M_X64)

bool has_bits(int word, uint32_t bits) {
    return (static_cast<uint32_t>(word) & bits) == bits;
}

// Whether the system saves the registers that `bits` of XCR0 stand for.
bool system_saves(uint64_t bits) {
    int leaf[4];
    __cpuid(leaf, 1);
    if (!has_bits(leaf[2], 1u << 27)) return false;
    return (_xgetbv(0) & bits) == bits;
}

int32_t simd_level() {
    int leaf[4];
    __cpuid(leaf, 0);
    if (leaf[0] < 7) return 0;
    __cpuid(leaf, 1);
    const bool fma = has_bits(leaf[2], 1u << 12);
    __cpuidex(leaf, 7, 0);
    const bool avx2 = fma && has_bits(leaf[1], 1u << 5 | 1u << 8) && system_saves(0x6);
    const bool avx512 = has_bits(leaf[1], 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) &&
                        has_bits(leaf[2], 1u << 1) && system_saves(0xe6);
    return avx2 ? 1 + avx512 : 0;
}

#elif defined(__x86_64__)

int32_t simd_level() {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return 0;
    if (!__builtin_cpu_supports("fma")) return 0;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vbmi");
    return 1 + avx512;
}

#else

int32_t simd_level() {
    return 0;
}

#endif

}  // namespace

// What the running processor and system support: 0 baseline, 1 AVX2, 2 AVX-512.
CVCLI_EXPORT int32_t cvcli_simd_level(void) {
    return simd_level();
}

#define CVCLI_MAP(name, T, C)                                                                     \
    CVCLI_EXPORT void cvcli_map_##name##_##C(const cvcli::MapArgs* args, const cvcli::RowFn* fns, \
                                             int32_t nfns, int64_t begin, int64_t end) {          \
        cvcli::map_rows<T, C>(*args, {args->table, fns, nfns, {}}, begin, end);                   \
    }

#define CVCLI_MAPS(name, T) \
    CVCLI_MAP(name, T, 1)   \
    CVCLI_MAP(name, T, 2)   \
    CVCLI_MAP(name, T, 3)   \
    CVCLI_MAP(name, T, 4)

CVCLI_MAPS(u8, uint8_t)
CVCLI_MAPS(u16, uint16_t)
CVCLI_MAPS(f32, float)

#define CVCLI_READ(name, T, C)                                                                    \
    CVCLI_EXPORT void cvcli_gather_##name##_##C(const cvcli::Image* src, const cvcli::Move* move, \
                                                int32_t row, int32_t width, void* out) {          \
        cvcli::gather_row<sizeof(T) * C>(*src, *move, row, width, out);                           \
    }                                                                                             \
    CVCLI_EXPORT void cvcli_planes_##name##_##C(const cvcli::Image* src, const cvcli::Move* move, \
                                                int32_t row, int32_t width, void* out) {          \
        cvcli::planes_row<T, C>(*src, *move, row, width, out);                                    \
    }

#define CVCLI_READS(name, T) \
    CVCLI_READ(name, T, 1)   \
    CVCLI_READ(name, T, 2)   \
    CVCLI_READ(name, T, 3)   \
    CVCLI_READ(name, T, 4)

CVCLI_READS(u8, uint8_t)
CVCLI_READS(u16, uint16_t)
CVCLI_READS(f32, float)

#define CVCLI_TABLE(name, T, C)                                                           \
    CVCLI_EXPORT void cvcli_pixels_table_##name##_##C(const void* params, const void* in, \
                                                      void* out, int64_t width) {         \
        cvcli::Lookups step;                                                              \
        std::memcpy(&step, params, sizeof step);                                          \
        cvcli::lookup_row<C>(static_cast<T*>(out), static_cast<const T*>(in), width,      \
                             static_cast<const T*>(step.entries));                        \
    }

#define CVCLI_TABLES(name, T) \
    CVCLI_TABLE(name, T, 1)   \
    CVCLI_TABLE(name, T, 2)   \
    CVCLI_TABLE(name, T, 3)   \
    CVCLI_TABLE(name, T, 4)

CVCLI_TABLES(u8, uint8_t)
CVCLI_TABLES(u16, uint16_t)

namespace cvcli {

void put_planes(const Image& dst, int32_t row, const void* pixels, int32_t bytes,
                int32_t channels) {
    put_samples(dst, row, pixels, bytes, channels);
}

}  // namespace cvcli
