// What differs between the two compilers that read the kernels: the host's and NVRTC.
#pragma once

#if !defined(CVCLI_CUDA)
#if defined(__CUDACC_RTC__)
#define CVCLI_CUDA 1
#else
#define CVCLI_CUDA 0
#endif
#endif

// CVCLI_FN marks shared functions; CVCLI_CALL long ones, which a kernel should hold only once;
// CVCLI_ONCE goes before a host's function whose work takes so much longer than a call that its
// callers, one for each kind of pixel, share one copy: copies are what takes a compiler its time.
// CVCLI_UNROLL goes before a short loop over an array that is to be in registers.
#if defined(__CUDACC_RTC__)

// NVRTC has no standard headers. `long` is 32 bits wide on Windows, so 64 bits are `long long`.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#define CVCLI_FN __device__ __forceinline__
#define CVCLI_CALL static __device__ __noinline__
#define CVCLI_UNROLL _Pragma("unroll")

#else

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;
#define CVCLI_FN inline
#define CVCLI_CALL inline
#if defined(_MSC_VER)
#define CVCLI_ONCE __declspec(noinline)
#else
#define CVCLI_ONCE __attribute__((noinline))
#endif
#if defined(__GNUC__)
#define CVCLI_UNROLL _Pragma("GCC unroll 16")
#else
#define CVCLI_UNROLL
#endif

#endif

#if defined(_WIN32)
#define CVCLI_EXPORT extern "C" __declspec(dllexport)
#else
#define CVCLI_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace cvcli {

template <class T>
CVCLI_FN constexpr T smaller(T a, T b) {
    return b < a ? b : a;
}

template <class T>
CVCLI_FN constexpr T larger(T a, T b) {
    return a < b ? b : a;
}

// The few operations below are exact (or correctly rounded) in IEEE 754, so either device's own
// one may be used; anything that is not exact is written out in shared code instead.
#if defined(__CUDACC_RTC__)

template <class T>
CVCLI_FN T read_only(const T* from) {
    return __ldg(from);
}
// Python gives device addresses only; knowing that spares each access a look at which memory.
template <class T>
CVCLI_FN T* in_global(T* pointer) {
    __builtin_assume(__isGlobal(pointer));
    return pointer;
}
CVCLI_FN float float_of(uint32_t bits) {
    return __uint_as_float(bits);
}
CVCLI_FN uint32_t bits_of(float value) {
    return __float_as_uint(value);
}
CVCLI_FN double double_of(int64_t bits) {
    return __longlong_as_double(bits);
}
CVCLI_FN int64_t bits_of(double value) {
    return __double_as_longlong(value);
}
CVCLI_FN double fused(double a, double b, double c) {
    return fma(a, b, c);
}
CVCLI_FN float floor_of(float value) {
    return floorf(value);
}
CVCLI_FN double floor_of(double value) {
    return floor(value);
}

#else

template <class T>
inline T read_only(const T* from) {
    return *from;
}
template <class T>
inline T* in_global(T* pointer) {
    return pointer;
}
template <class To, class From>
inline To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit copy keeps the size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline float float_of(uint32_t bits) {
    return same_bits<float>(bits);
}
inline uint32_t bits_of(float value) {
    return same_bits<uint32_t>(value);
}
inline double double_of(int64_t bits) {
    return same_bits<double>(bits);
}
inline int64_t bits_of(double value) {
    return same_bits<int64_t>(value);
}
inline double fused(double a, double b, double c) {
    return std::fma(a, b, c);
}
inline float floor_of(float value) {
    return std::floor(value);
}
inline double floor_of(double value) {
    return std::floor(value);
}

#endif

}  // namespace cvcli
