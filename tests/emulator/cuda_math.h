// The arithmetic that CUDA has built in: bits, packed bytes, conversions, minima.
#pragma once

EMU_FN float __uint_as_float(unsigned bits) {
    return emu_bits<float>(bits);
}
EMU_FN float __int_as_float(int bits) {
    return emu_bits<float>(bits);
}
EMU_FN unsigned __float_as_uint(float value) {
    return emu_bits<unsigned>(value);
}
EMU_FN int __float_as_int(float value) {
    return emu_bits<int>(value);
}
EMU_FN double __longlong_as_double(long long bits) {
    return emu_bits<double>(bits);
}
EMU_FN long long __double_as_longlong(double value) {
    return emu_bits<long long>(value);
}
EMU_FN double __hiloint2double(int high, int low) {
    return emu_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
EMU_FN int __double2hiint(double value) {
    return int(__double_as_longlong(value) >> 32);
}
EMU_FN int __double2loint(double value) {
    return int(__double_as_longlong(value));
}

EMU_FN int __popc(unsigned v) {
    return __builtin_popcount(v);
}
EMU_FN int __popcll(unsigned long long v) {
    return __builtin_popcountll(v);
}
EMU_FN int __clz(int v) {
    return v ? __builtin_clz(v) : 32;
}
EMU_FN int __clzll(long long v) {
    return v ? __builtin_clzll(v) : 64;
}
EMU_FN int __ffs(int v) {
    return __builtin_ffs(v);
}
EMU_FN int __ffsll(long long v) {
    return __builtin_ffsll(v);
}
EMU_FN unsigned __brev(unsigned v) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= (v >> i & 1) << (31 - i);
    return out;
}
EMU_FN unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> (4 * i);
        unsigned byte = unsigned(both >> ((pick & 7) * 8)) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        out |= byte << (8 * i);
    }
    return out;
}
EMU_FN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return unsigned(((unsigned long long)high << 32 | low) >> (by & 31));
}
EMU_FN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return unsigned(((unsigned long long)high << 32 | low) << (by & 31) >> 32);
}
EMU_FN unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}
EMU_FN unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}
EMU_FN unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned long long)a * b >> 32;
}
EMU_FN int __mulhi(int a, int b) {
    return int((long long)a * b >> 32);
}
EMU_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}
EMU_FN int __mul24(int a, int b) {
    return int(unsigned(a << 8 >> 8) * unsigned(b << 8 >> 8));
}
EMU_FN unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffff) * (b & 0xffffff);
}
EMU_FN unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a > b ? a - b : b - a) + c;
}
EMU_FN unsigned __sad(int a, int b, unsigned c) {
    return (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)) + c;
}
EMU_FN int __hadd(int a, int b) {
    return int(((long long)a + b) >> 1);
}
EMU_FN int __rhadd(int a, int b) {
    return int(((long long)a + b + 1) >> 1);
}
EMU_FN unsigned __uhadd(unsigned a, unsigned b) {
    return ((unsigned long long)a + b) >> 1;
}
EMU_FN unsigned __urhadd(unsigned a, unsigned b) {
    return ((unsigned long long)a + b + 1) >> 1;
}

EMU_FN int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) {
        c = int(unsigned(c) + unsigned((signed char)(a >> 8 * i) * (signed char)(b >> 8 * i)));
    }
    return c;
}
EMU_FN unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}
EMU_FN unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
EMU_FN unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
    return c + (a & 0xffff) * (b >> 16 & 0xff) + (a >> 16) * (b >> 24);
}

// Operations on the bytes or halves of a word: a and b are one of each, as `type`.
#define EMU_PACKED_BY(name, type, bits, expression)                  \
    EMU_FN unsigned name(unsigned first, unsigned second) {          \
        unsigned out = 0;                                            \
        for (int i = 0; i < 32; i += bits) {                         \
            const int a = type(first >> i), b = type(second >> i);   \
            out |= (unsigned(expression) & ((1u << bits) - 1)) << i; \
        }                                                            \
        return out;                                                  \
    }
#define EMU_PACKED(name, sign, expression)                            \
    EMU_PACKED_BY(__v##name##sign##4, EMU_BYTE_##sign, 8, expression) \
    EMU_PACKED_BY(__v##name##sign##2, EMU_HALF_##sign, 16, expression)
#define EMU_PACKED_ANY(name, expression)                        \
    EMU_PACKED_BY(__v##name##4, (unsigned char), 8, expression) \
    EMU_PACKED_BY(__v##name##2, (unsigned short), 16, expression)
#define EMU_BYTE_u (unsigned char)
#define EMU_BYTE_s (signed char)
#define EMU_HALF_u (unsigned short)
#define EMU_HALF_s (short)
EMU_PACKED_ANY(add, a + b)
EMU_PACKED_ANY(sub, a - b)
EMU_PACKED_ANY(cmpeq, a == b ? -1 : 0)
EMU_PACKED_ANY(cmpne, a != b ? -1 : 0)
EMU_PACKED_ANY(seteq, a == b)
EMU_PACKED_ANY(setne, a != b)
EMU_PACKED(min, u, a < b ? a : b)
EMU_PACKED(min, s, a < b ? a : b)
EMU_PACKED(max, u, a > b ? a : b)
EMU_PACKED(max, s, a > b ? a : b)
EMU_PACKED(cmpgt, u, a > b ? -1 : 0)
EMU_PACKED(cmpgt, s, a > b ? -1 : 0)
EMU_PACKED(cmpge, u, a >= b ? -1 : 0)
EMU_PACKED(cmpge, s, a >= b ? -1 : 0)
EMU_PACKED(cmplt, u, a < b ? -1 : 0)
EMU_PACKED(cmplt, s, a < b ? -1 : 0)
EMU_PACKED(cmple, u, a <= b ? -1 : 0)
EMU_PACKED(cmple, s, a <= b ? -1 : 0)
EMU_PACKED(setgt, u, a > b)
EMU_PACKED(setlt, u, a < b)
EMU_PACKED(setge, u, a >= b)
EMU_PACKED(setle, u, a <= b)
EMU_PACKED(avg, u, (a + b + 1) >> 1)
EMU_PACKED(hadd, u, (a + b) >> 1)
EMU_PACKED(absdiff, u, a > b ? a - b : b - a)
EMU_PACKED(absdiff, s, a > b ? a - b : b - a)
EMU_PACKED_BY(__vaddus4, (unsigned char), 8, a + b > 255 ? 255 : a + b)
EMU_PACKED_BY(__vaddus2, (unsigned short), 16, a + b > 65535 ? 65535 : a + b)
EMU_PACKED_BY(__vsubus4, (unsigned char), 8, a > b ? a - b : 0)
EMU_PACKED_BY(__vsubus2, (unsigned short), 16, a > b ? a - b : 0)
EMU_FN unsigned __vsadu4(unsigned a, unsigned b) {
    const unsigned each = __vabsdiffu4(a, b);
    return (each & 0xff) + (each >> 8 & 0xff) + (each >> 16 & 0xff) + (each >> 24);
}

// Conversions saturate, and give 0 for NaN.
template <class To, class From>
EMU_FN To emu_convert(From value, double low, double high) {
    if (value != value) return 0;
    if (double(value) <= low) return To(low);
    return double(value) >= high ? To(high) : To(value);
}
#define EMU_CONVERT(from, base, mode, round)                            \
    EMU_FN int __##base##2int_##mode(from v) {                          \
        return emu_convert<int>(round(v), -2147483648.0, 2147483647.0); \
    }                                                                   \
    EMU_FN unsigned __##base##2uint_##mode(from v) {                    \
        return emu_convert<unsigned>(round(v), 0.0, 4294967295.0);      \
    }
EMU_CONVERT(float, float, rn, rintf)
EMU_CONVERT(float, float, rd, floorf)
EMU_CONVERT(float, float, ru, ceilf)
EMU_CONVERT(float, float, rz, truncf)
EMU_CONVERT(double, double, rn, rint)
EMU_CONVERT(double, double, rd, floor)
EMU_CONVERT(double, double, ru, ceil)
EMU_CONVERT(double, double, rz, trunc)
EMU_FN float __int2float_rn(int v) {
    return float(v);
}
EMU_FN float __uint2float_rn(unsigned v) {
    return float(v);
}
EMU_FN double __int2double_rn(int v) {
    return v;
}
EMU_FN double __uint2double_rn(unsigned v) {
    return v;
}
EMU_FN float __double2float_rn(double v) {
    return float(v);
}
EMU_FN float __ll2float_rn(long long v) {
    return float(v);
}
EMU_FN double __ll2double_rn(long long v) {
    return double(v);
}

EMU_FN float __fadd_rn(float a, float b) {
    return a + b;
}
// Of the sum as rounded, what it lost says whether it went up.
EMU_FN float __fadd_rd(float a, float b) {
    const float sum = a + b, back = sum - a;
    const float lost = (a - (sum - back)) + (b - back);
    return lost < 0.0f ? nextafterf(sum, -INFINITY) : sum;
}
EMU_FN float __fsub_rn(float a, float b) {
    return a - b;
}
EMU_FN float __fmul_rn(float a, float b) {
    return a * b;
}
EMU_FN float __fdiv_rn(float a, float b) {
    return a / b;
}
EMU_FN float __frcp_rn(float a) {
    return 1.0f / a;
}
EMU_FN float __fsqrt_rn(float a) {
    return sqrtf(a);
}
EMU_FN float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
EMU_FN double __dadd_rn(double a, double b) {
    return a + b;
}
EMU_FN double __dsub_rn(double a, double b) {
    return a - b;
}
EMU_FN double __dmul_rn(double a, double b) {
    return a * b;
}
EMU_FN double __ddiv_rn(double a, double b) {
    return a / b;
}
EMU_FN double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}

// A NaN loses, and -0 is less than 0.
template <class T>
EMU_FN T emu_least(T a, T b) {
    if (a != a) return b;
    if (b != b || a < b) return a;
    return a == b && signbit(a) ? a : b;
}
template <class T>
EMU_FN T emu_most(T a, T b) {
    if (a != a) return b;
    if (b != b || a > b) return a;
    return a == b && !signbit(a) ? a : b;
}
EMU_FN float __saturatef(float v) {
    return v != v ? 0.0f : v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}
#define fminf(a, b) emu_least<float>(a, b)
#define fmaxf(a, b) emu_most<float>(a, b)
#define fmin(a, b) emu_least<double>(a, b)
#define fmax(a, b) emu_most<double>(a, b)
#define EMU_MINIMA(type)              \
    EMU_FN type min(type a, type b) { \
        return b < a ? b : a;         \
    }                                 \
    EMU_FN type max(type a, type b) { \
        return a < b ? b : a;         \
    }
EMU_MINIMA(int)
EMU_MINIMA(unsigned)
EMU_MINIMA(long long)
EMU_MINIMA(unsigned long long)
EMU_FN float min(float a, float b) {
    return emu_least(a, b);
}
EMU_FN float max(float a, float b) {
    return emu_most(a, b);
}
EMU_FN double min(double a, double b) {
    return emu_least(a, b);
}
EMU_FN double max(double a, double b) {
    return emu_most(a, b);
}
EMU_FN unsigned umin(unsigned a, unsigned b) {
    return min(a, b);
}
EMU_FN unsigned umax(unsigned a, unsigned b) {
    return max(a, b);
}
