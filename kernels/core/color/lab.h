// sRGB to and from CIE L*a*b* and L*u*v*, D65 white. FloatRgb are L* of 0 to 100 with a*, b*, u*,
// v* as they are; bytes are scaled as in OpenCV: L* by 2.55, a* and b* moved by 128, u* and v* from
// [-134, 220] and [-140, 122].
#pragma once

#include "core/color/luma.h"
#include "core/power.h"

namespace cvcli {

using FloatRgb = Pixel<float, 3>;

constexpr float kWhiteX = 0.950456f;
constexpr float kWhiteZ = 1.088754f;
// u' and v' of white, 4 X / (X + 15 Y + 3 Z) and 9 Y / (X + 15 Y + 3 Z), times 13.
constexpr float kWhiteU = 13.0f * 0.19793943f;
constexpr float kWhiteV = 13.0f * 0.46831096f;
constexpr float kDark = 0.008856f;  // (6 / 29)^3, below which the curves are lines

// Linear light of a sample: bytes by table, floats cut to 0 to 1 as in OpenCV.
CVCLI_FN float light_of(uint8_t v, const float* table) {
    return read_only(table + v);
}
CVCLI_FN float light_of(float v, const float*) {
    return linear_of(clipped(v));
}

template <class T>
CVCLI_FN float root_of(float v) {
    return sizeof(T) == 1 ? coarse_cube_root(v) : cube_root(v);
}

// The curve of L*a*b*.
template <class T>
CVCLI_FN float curve_of(float v) {
    const float root = root_of<T>(larger(v, 0.008f));
    return v > kDark ? root : v * 7.787f + 16.0f / 116.0f;
}

CVCLI_FN float back_through_curve(float f) {
    return f <= 6.0f / 29.0f ? (f - 16.0f / 116.0f) * (1.0f / 7.787f) : f * f * f;
}

template <class T>
CVCLI_FN FloatRgb lab_of(const FloatRgb& xyz) {
    const float fx = curve_of<T>(xyz.v[0] * (1.0f / kWhiteX));
    const float fy = curve_of<T>(xyz.v[1]);
    const float fz = curve_of<T>(xyz.v[2] * (1.0f / kWhiteZ));
    return {{116.0f * fy - 16.0f, 500.0f * (fx - fy), 200.0f * (fy - fz)}};
}

template <class T>
CVCLI_FN FloatRgb luv_of(const FloatRgb& xyz) {
    const float l = 116.0f * curve_of<T>(xyz.v[1]) - 16.0f;
    const float sum = (xyz.v[0] + 15.0f * xyz.v[1]) + 3.0f * xyz.v[2];
    const float share = 52.0f / larger(sum, 1.1920929e-07f);
    return {{l, l * (xyz.v[0] * share - kWhiteU), l * (2.25f * (share * xyz.v[1]) - kWhiteV)}};
}

CVCLI_FN FloatRgb xyz_of_lab(const FloatRgb& lab) {
    const float fy = (lab.v[0] + 16.0f) * (1.0f / 116.0f);
    const float fx = fy + lab.v[1] * 0.002f;
    const float fz = fy - lab.v[2] * 0.005f;
    return {{back_through_curve(fx) * kWhiteX, back_through_curve(fy),
             back_through_curve(fz) * kWhiteZ}};
}

template <class T>
CVCLI_FN FloatRgb xyz_of_luv(const FloatRgb& luv) {
    const float l = luv.v[0];
    const float y = back_through_curve((l + 16.0f) * (1.0f / 116.0f));
    const float up = 3.0f * (luv.v[1] + l * kWhiteU);
    // Black divides 0 by 0; a NaN is cut to 0 in the end, as impossible colours are cut to 0 to 1.
    // In bytes v* of dark colours is so coarse that the quotient is bounded, as in OpenCV.
    const float inverse = 0.25f / (luv.v[2] + l * kWhiteV);
    const float bounded = inverse > 0.25f ? 0.25f : (inverse < -0.25f ? -0.25f : inverse);
    const float vp = sizeof(T) == 1 ? bounded : inverse;
    return {{y * 3.0f * (up * vp), y, y * ((156.0f * l - up) * vp - 5.0f)}};
}

CVCLI_FN FloatRgb multiplied(const Matrix<float>& k, const FloatRgb& in) {
    FloatRgb out;
    for (int c = 0; c < 3; ++c) out.v[c] = row_times(k, c, in.v[0], in.v[1], in.v[2]);
    return out;
}

// How the three numbers of a space are kept in bytes: v * scale + shift.
struct Scaling {
    float scale[3];
    float shift[3];
};

template <bool luv>
constexpr Scaling kScaling =
    luv ? Scaling{{2.55f, 255.0f / 354.0f, 255.0f / 262.0f},
                  {0.0f, 134.0f * 255.0f / 354.0f, 140.0f * 255.0f / 262.0f}}
        : Scaling{{2.55f, 1.0f, 1.0f}, {0.0f, 128.0f, 128.0f}};

template <bool luv>
struct ToLab {
    float unused;
    const float* light;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C> && sizeof(T) != 2;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        FloatRgb rgb;
        for (int c = 0; c < 3; ++c) rgb.v[c] = light_of(in.v[c], light);
        const FloatRgb xyz = multiplied(kToXyz, rgb);
        return with_colors(in, stored(luv ? luv_of<T>(xyz) : lab_of<T>(xyz), in));
    }

  private:
    template <int C>
    CVCLI_FN static Pixel<uint8_t, 3> stored(const FloatRgb& v, const Pixel<uint8_t, C>&) {
        const Scaling k = kScaling<luv>;
        Pixel<uint8_t, 3> out;
        for (int c = 0; c < 3; ++c) out.v[c] = to_sample<uint8_t>(v.v[c] * k.scale[c] + k.shift[c]);
        return out;
    }
    template <int C>
    CVCLI_FN static FloatRgb stored(const FloatRgb& v, const Pixel<float, C>&) {
        return {{canonical(v.v[0]), canonical(v.v[1]), canonical(v.v[2])}};
    }
};

template <bool luv>
struct FromLab {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C> && sizeof(T) != 2;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const FloatRgb v = loaded(in);
        const FloatRgb rgb = multiplied(kFromXyz, luv ? xyz_of_luv<T>(v) : xyz_of_lab(v));
        Pixel<T, C> out = in;
        for (int c = 0; c < 3; ++c) {
            out.v[c] = to_sample<T>(srgb_of(clipped(rgb.v[c])) * kWhite<T>);
        }
        return out;
    }

  private:
    template <int C>
    CVCLI_FN static FloatRgb loaded(const Pixel<uint8_t, C>& in) {
        const Scaling k = kScaling<luv>;
        FloatRgb out;
        for (int c = 0; c < 3; ++c) {
            out.v[c] = (to_float(in.v[c]) - k.shift[c]) * (1.0f / k.scale[c]);
        }
        return out;
    }
    template <int C>
    CVCLI_FN static FloatRgb loaded(const Pixel<float, C>& in) {
        return {{in.v[0], in.v[1], in.v[2]}};
    }
};

}  // namespace cvcli
