// RGB to and from HSV and HLS: bytes with the hue in 180 or 256 steps, floats with it in degrees.
#pragma once

#include "core/arith.h"

namespace cvcli {

// The largest of three samples, the smallest and their distance; and the hue in sixths of a turn,
// sector + part / spread, from -1 to 5.
struct Hue {
    float high;
    float low;
    float spread;
    float part;
    float sector;
    // The hue times the spread.
    CVCLI_FN float turn() const { return part + sector * spread; }
};

CVCLI_FN Hue hue_of(float r, float g, float b, float high, float low) {
    // Values are selected, not differences, so that no compiler makes a branch of it.
    const bool red = high == r, green = high == g;
    const float more = red ? g : (green ? b : r);
    const float less = red ? b : (green ? r : g);
    const float sector = red ? 0.0f : (green ? 2.0f : 4.0f);
    return {high, low, high - low, more - less, sector};
}

// Of samples that are no NaN.
CVCLI_FN Hue whole_hue(float r, float g, float b) {
    return hue_of(r, g, b, greater_of(greater_of(r, g), b), lesser_of(lesser_of(r, g), b));
}

template <class T>
CVCLI_FN Hue hue_of(T r, T g, T b) {
    return whole_hue(to_float(r), to_float(g), to_float(b));
}

CVCLI_FN Hue hue_of(float r, float g, float b) {
    return hue_of(r, g, b, larger(larger(r, g), b), smaller(smaller(r, g), b));
}

// The fixed point of OpenCV: part * round(4096 * unit / whole) / 4096, half up. All products are
// whole numbers below 2^22, so no sum here rounds. Not yet rounded itself, but off every half.
CVCLI_FN float fixed_ratio(float part, float unit, float whole) {
    const float factor = rounded(near_quotient(unit, greater_of(whole, 1.0f)));
    return exactly_fused(part * factor, 0x1p-12f, 0x1p-13f);
}

// A sixth of the steps of a whole turn, as a quotient of whole numbers.
template <int steps>
constexpr float kSixth = steps % 6 ? (steps % 3 ? steps : steps / 3) : steps / 6;
template <int steps>
constexpr float kSixthOf = steps % 6 ? (steps % 3 ? 6.0f : 2.0f) : 1.0f;

// What rounds to the bytes.
template <int steps>
CVCLI_FN Pixel<float, 3> hsv_of(const Hue& hue) {
    const float turn =
        fixed_ratio(hue.turn(), 4096.0f * kSixth<steps>, kSixthOf<steps> * hue.spread);
    const float whole = rounded(turn);
    const float h = whole + (whole < 0.0f ? float(steps) : 0.0f);
    const float s = fixed_ratio(hue.spread, 1044480.0f, hue.high);
    return {{steps > 255 ? lesser_of(h, 255.0f) : h, s, hue.high}};
}

constexpr float kTiny = 1.1920929e-07f;  // FLT_EPSILON

CVCLI_FN float degrees(const Hue& hue, float divisor) {
    const float angle = hue.part * (60.0f / divisor) + 60.0f * hue.sector;
    return angle < 0.0f ? angle + 360.0f : angle;
}

CVCLI_FN Pixel<float, 3> hsv_of_floats(const Hue& hue) {
    const float size = hue.high < 0.0f ? -hue.high : hue.high;
    const float s = hue.spread / (size + kTiny);
    return {{canonical(degrees(hue, hue.spread + kTiny)), canonical(s), canonical(hue.high)}};
}

// As OpenCV computes it in floats, a hue just below a whole turn rounds up to it.
template <int steps>
CVCLI_FN float hls_turn(const Hue& hue) {
    const float width = kSixthOf<steps> * greater_of(hue.spread, 1.0f);
    const float turn = hue.turn();
    const float part = (kSixth<steps> * turn + 0.25f) * near_reciprocal(width);
    return part + (turn < 0.0f ? float(steps) : 0.0f);
}

template <int steps>
CVCLI_FN Pixel<float, 3> hls_of(const Hue& hue) {
    const float sum = hue.high + hue.low;
    const float room = greater_of(sum < 255.0f ? sum : 510.0f - sum, 1.0f);
    return {{hls_turn<steps>(hue), 0.5f * sum, whole_ratio(255.0f * hue.spread, room)}};
}

CVCLI_FN Pixel<float, 3> hls_of_floats(const Hue& hue) {
    const float sum = hue.high + hue.low;
    const float l = sum * 0.5f;
    const bool plain = hue.spread > kTiny;
    const float s = hue.spread / (l < 0.5f ? sum : 2.0f - sum);
    const float h = degrees(hue, plain ? hue.spread : 1.0f);
    // NaN samples make every comparison false; they must not look like gray.
    const bool gray = hue.spread <= kTiny;
    return {{gray ? 0.0f : canonical(h), canonical(l), gray ? 0.0f : canonical(s)}};
}

// v - spread * clamp(min(k, 4 - k), 0, 1), the k of red, green and blue being the hue in sixths
// of a turn plus 5, 3 and 1. (The usual table of six sectors says the same.)
CVCLI_FN float of_sixth(float turn, float shift, float high, float spread) {
    const float k = turn + shift;
    const float within = k >= 6.0f ? k - 6.0f : k;
    const float ramp = within < 4.0f - within ? within : 4.0f - within;
    const float part = ramp < 1.0f ? ramp : 1.0f;
    return high - spread * (part > 0.0f ? part : 0.0f);
}

// A hue of any size in sixths, brought to [0, 6).
CVCLI_FN float whole_turns_off(float sixths) {
    const float rest = sixths - 6.0f * floor_of(sixths * (1.0f / 6.0f));
    return rest >= 6.0f ? 0.0f : (rest < 0.0f ? 0.0f : rest);
}

// A NaN hue, which a clamp may or may not let through, makes all of them NaN.
CVCLI_FN Pixel<float, 3> rgb_of(float turn, float high, float spread) {
    high += turn - turn;
    return {{of_sixth(turn, 5.0f, high, spread), of_sixth(turn, 3.0f, high, spread),
             of_sixth(turn, 1.0f, high, spread)}};
}

CVCLI_FN Pixel<float, 3> rgb_of_hsv(float turn, float s, float v) {
    return rgb_of(turn, v, v * s);
}

CVCLI_FN Pixel<float, 3> rgb_of_hls(float turn, float l, float s) {
    const float high = l <= 0.5f ? l + l * s : (l + s) - l * s;
    return rgb_of(turn, high, 2.0f * (high - l));
}

CVCLI_FN Pixel<float, 3> canonicals_of(const Pixel<float, 3>& unit) {
    Pixel<float, 3> out;
    for (int c = 0; c < 3; ++c) out.v[c] = canonical(unit.v[c]);
    return out;
}

// A byte of hue in sixths of a turn; bytes past the last step go round.
template <int steps>
CVCLI_FN float sixths_of(float hue) {
    const float sixths = hue * (6.0f / float(steps));
    return sixths >= 6.0f ? sixths - 6.0f : sixths;
}

// Which of two spaces, so that one struct serves both.
enum class Solid { kHsv, kHls };

// `steps` make a whole turn in bytes.
template <Solid solid, int steps>
struct ToHue {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C> && sizeof(T) != 2;
    }
    template <int C>
    CVCLI_FN Pixel<uint8_t, C> operator()(const Pixel<uint8_t, C>& in) const {
        const Pixel<float, C> bytes = unrounded<uint8_t>(floats_of(in));
        Pixel<uint8_t, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = whole_sample<uint8_t>(bytes.v[c]);
        return out;
    }
    static constexpr bool kRounds = true;
    template <class T, int C>
    CVCLI_FN Pixel<float, C> unrounded(const Pixel<float, C>& in) const {
        const Hue hue = whole_hue(in.v[0], in.v[1], in.v[2]);
        return with_colors(in, solid == Solid::kHsv ? hsv_of<steps>(hue) : hls_of<steps>(hue));
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<float, C>& in) const {
        const Hue hue = hue_of(in.v[0], in.v[1], in.v[2]);
        return with_colors(in, solid == Solid::kHsv ? hsv_of_floats(hue) : hls_of_floats(hue));
    }
};

template <Solid solid, int steps>
struct FromHue {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C> && sizeof(T) != 2;
    }
    CVCLI_FN static Pixel<float, 3> unit(float turn, float second, float third) {
        return solid == Solid::kHsv ? rgb_of_hsv(turn, second, third)
                                    : rgb_of_hls(turn, second, third);
    }
    template <int C>
    CVCLI_FN Pixel<uint8_t, C> operator()(const Pixel<uint8_t, C>& in) const {
        const Pixel<float, C> bytes = unrounded<uint8_t>(floats_of(in));
        Pixel<uint8_t, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = to_sample<uint8_t>(bytes.v[c]);
        return out;
    }
    static constexpr bool kRounds = true;
    template <class T, int C>
    CVCLI_FN Pixel<float, C> unrounded(Pixel<float, C> v) const {
        const float scale = 1.0f / 255.0f;
        const auto colors = unit(sixths_of<steps>(v.v[0]), v.v[1] * scale, v.v[2] * scale);
        for (int c = 0; c < 3; ++c) v.v[c] = colors.v[c] * 255.0f;
        return v;
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<float, C>& in) const {
        const float turn = whole_turns_off(in.v[0] * (1.0f / 60.0f));
        return with_colors(in, canonicals_of(unit(turn, in.v[1], in.v[2])));
    }
};

}  // namespace cvcli
