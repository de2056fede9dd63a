// RGB to and from YCrCb, YUV and XYZ: integers in OpenCV's fixed point, floats by the matrices
// that it documents.
#pragma once

#include "core/arith.h"

namespace cvcli {

// Chroma is the distance from luma to red and to blue times a factor, around the middle. In YUV
// the distance to blue comes first.
struct Chroma {
    int32_t red;
    int32_t blue;
    int32_t back_red;
    int32_t back_green_red;
    int32_t back_green_blue;
    int32_t back_blue;
};

// round(2^14 * factor): 0.713, 0.564, 1.403, -0.714, -0.344, 1.773 of YCrCb,
// 0.877, 0.492, 1.14, -0.581, -0.395, 2.032 of YUV.
template <bool yuv>
constexpr Chroma kChroma = yuv ? Chroma{14369, 8061, 18678, -9519, -6472, 33292}
                               : Chroma{11682, 9241, 22987, -11698, -5636, 29049};

struct FloatChroma {
    float red;
    float blue;
    float back_red;
    float back_green_red;
    float back_green_blue;
    float back_blue;
};

template <bool yuv>
constexpr FloatChroma kFloatChroma =
    yuv ? FloatChroma{0.877f, 0.492f, 1.14f, -0.581f, -0.395f, 2.032f}
        : FloatChroma{0.713f, 0.564f, 1.403f, -0.714f, -0.344f, 1.773f};

template <class T>
constexpr int32_t kMiddle = 1 << (8 * sizeof(T) - 1);

template <bool yuv>
struct ToLuma {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const int32_t r = in.v[0], g = in.v[1], b = in.v[2];
        const int32_t y = (r * 4899 + g * 9617 + b * 1868 + 8192) >> 14;
        const int32_t middle = kMiddle<T> << 14;
        const T cr = descaled<T>((r - y) * kChroma<yuv>.red + middle, 14);
        const T cb = descaled<T>((b - y) * kChroma<yuv>.blue + middle, 14);
        return with_colors(in, Pixel<T, 3>{{static_cast<T>(y), yuv ? cb : cr, yuv ? cr : cb}});
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<float, C>& in) const {
        const float y = (in.v[0] * 0.299f + in.v[1] * 0.587f) + in.v[2] * 0.114f;
        const float cr = canonical((in.v[0] - y) * kFloatChroma<yuv>.red + 0.5f);
        const float cb = canonical((in.v[2] - y) * kFloatChroma<yuv>.blue + 0.5f);
        return with_colors(in, Pixel<float, 3>{{canonical(y), yuv ? cb : cr, yuv ? cr : cb}});
    }
};

template <bool yuv>
struct FromLuma {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Chroma k = kChroma<yuv>;
        const int32_t cr = int32_t(in.v[yuv ? 2 : 1]) - kMiddle<T>;
        const int32_t cb = int32_t(in.v[yuv ? 1 : 2]) - kMiddle<T>;
        // Luma is added behind the rounding, where it can't overflow.
        return with_colors(
            in, Pixel<T, 3>{{raised(in.v[0], cr * k.back_red),
                             raised(in.v[0], cr * k.back_green_red + cb * k.back_green_blue),
                             raised(in.v[0], cb * k.back_blue)}});
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<float, C>& in) const {
        const FloatChroma k = kFloatChroma<yuv>;
        const float y = in.v[0];
        const float cr = in.v[yuv ? 2 : 1] - 0.5f;
        const float cb = in.v[yuv ? 1 : 2] - 0.5f;
        return with_colors(
            in, Pixel<float, 3>{{canonical(y + cr * k.back_red),
                                 canonical((y + cr * k.back_green_red) + cb * k.back_green_blue),
                                 canonical(y + cb * k.back_blue)}});
    }

  private:
    template <class T>
    CVCLI_FN static T raised(T y, int32_t sum) {
        const int32_t top = (1 << 8 * sizeof(T)) - 1;
        const int32_t v = int32_t(y) + ((sum + 8192) >> 14);
        return static_cast<T>(smaller(larger(v, 0), top));
    }
};

// The rows of a 3 x 3 matrix times 4096 for integers, and as it is for floats.
template <class K>
struct Matrix {
    K m[9];
};

template <class K>
CVCLI_FN K row_times(const Matrix<K>& k, int row, K a, K b, K c) {
    return (a * k.m[3 * row] + b * k.m[3 * row + 1]) + c * k.m[3 * row + 2];
}

// sRGB primaries, D65 white. The integers are rounded from these.
constexpr Matrix<float> kToXyz = {{0.412453f, 0.357580f, 0.180423f, 0.212671f, 0.715160f, 0.072169f,
                                   0.019334f, 0.119193f, 0.950227f}};
constexpr Matrix<float> kFromXyz = {{3.240479f, -1.53715f, -0.498535f, -0.969256f, 1.875991f,
                                     0.041556f, 0.055648f, -0.204043f, 1.057311f}};
constexpr Matrix<int32_t> kFixedToXyz = {{1689, 1465, 739, 871, 2929, 296, 79, 488, 3892}};
constexpr Matrix<int32_t> kFixedFromXyz = {
    {13273, -6296, -2042, -3970, 7684, 170, 228, -836, 4331}};

template <bool back>
struct Xyz {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Matrix<int32_t> k = back ? kFixedFromXyz : kFixedToXyz;
        const int32_t a = in.v[0], b = in.v[1], c = in.v[2];
        return with_colors(in, Pixel<T, 3>{{descaled<T>(row_times(k, 0, a, b, c), 12),
                                            descaled<T>(row_times(k, 1, a, b, c), 12),
                                            descaled<T>(row_times(k, 2, a, b, c), 12)}});
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<float, C>& in) const {
        const Matrix<float> k = back ? kFromXyz : kToXyz;
        const float a = in.v[0], b = in.v[1], c = in.v[2];
        return with_colors(in, Pixel<float, 3>{{canonical(row_times(k, 0, a, b, c)),
                                                canonical(row_times(k, 1, a, b, c)),
                                                canonical(row_times(k, 2, a, b, c))}});
    }
};

}  // namespace cvcli
