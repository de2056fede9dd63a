// Host exports of steps on pixels: each over a row, by blocks whose channels lie apart.
#pragma once

#include "core/channels_cpu.h"
#include "core/colors_cpu.h"
#include "core/lanes_cpu.h"

namespace cvcli {

// A step on a block of lanes. All lanes are made whatever the count, for loops of a fixed length.
// The step is a copy of its own, so that it is seen not to change.
template <class T, int C, class Step, class Out>
void step_lanes(const Step step, const Lanes<T, C>& __restrict in,
                Lanes<typename Out::Sample, Out::kChannels>& __restrict out) {
    for (int i = 0; i < kLanes; ++i) {
        Pixel<T, C> pixel;
        for (int c = 0; c < C; ++c) pixel.v[c] = in.v[c][i];
        const Out result = step(pixel);
        for (int c = 0; c < Out::kChannels; ++c) out.v[c][i] = result.v[c];
    }
}

template <class T, int C, class Step>
void step_block(const Step& step, const T* from, void* to, int count) {
    using Out = decltype(step(Pixel<T, C>{}));
    using U = typename Out::Sample;
    constexpr int D = Out::kChannels;
    Lanes<T, C> in;
    Lanes<U, D> out;
    T* split[C];
    const U* joined[D];
    for (int c = 0; c < C; ++c) split[c] = in.v[c];
    for (int d = 0; d < D; ++d) joined[d] = out.v[d];
    if (count < kLanes) std::memset(&in, 0, sizeof in);
    split_lanes<T, C>(from, split, count);
    step_lanes<T, C, Step, Out>(step, in, out);
    if (D == 1 && count == kLanes) {
        std::memcpy(to, &out, sizeof out);
        return;
    }
    join_lanes<U, D>(joined, static_cast<U*>(to), count);
}

// Steps from four bytes to four that do most of their work on all of them say so: kOnWords.
template <class Step, class = void>
struct OnWords {
    static constexpr bool value = false;
};
template <class Step>
struct OnWords<Step, typename Void<decltype(&Step::kOnWords)>::type> {
    static constexpr bool value = Step::kOnWords;
};

// Such a step on pixels as they lie.
template <class Step>
CVCLI_ONCE void step_words(const Step step, const uint8_t* __restrict from, uint8_t* __restrict to,
                           int64_t width) {
    for (int64_t x = 0; x < width; ++x) {
        Pixel<uint8_t, 4> pixel;
        std::memcpy(&pixel, from + x * 4, 4);
        pixel = step(pixel);
        std::memcpy(to + x * 4, &pixel, 4);
    }
}

template <class T, int C, class Step>
void step_row(const Step& step, const void* in, void* out, int64_t width) {
    using Out = decltype(step(Pixel<T, C>{}));
    const uint8_t* from = static_cast<const uint8_t*>(in);
    uint8_t* to = static_cast<uint8_t*>(out);
    if constexpr (MovesChannels<Step>::value) {
        return move_channels<Pixel<T, C>, Out>(step, from, to, width);
    }
    if constexpr (OnWords<Step>::value && sizeof(T) == 1 && C == 4) {
        return step_words(step, from, to, width);
    }
    int64_t x = 0;
    if constexpr (OnFloats<Step>::value && sizeof(T) == 1 && C == 3) {
        x = step_colors(step, from, to, width);
    }
    for (; x < width; x += kLanes) {
        const int count = static_cast<int>(smaller<int64_t>(kLanes, width - x));
        const T* block = reinterpret_cast<const T*>(from + x * int64_t{sizeof(T)} * C);
        step_block<T, C>(step, block, to + x * int64_t{sizeof(Out)}, count);
    }
}

template <class T, int C, class Step>
void pixels_row(const void* params, const void* in, void* out, int64_t width) {
    if constexpr (Step::template takes<T, C>()) {
        Step step;
        std::memcpy(&step, params, sizeof step);
        step_row<T, C>(step, in, out, width);
    }
}

template <int C, class Step>
void samples_row(const void* params, const void* in, void* out, int64_t width) {
    Step step;
    std::memcpy(&step, params, sizeof step);
    step_row<float, C>(step, in, out, width);
}

}  // namespace cvcli

#define CVCLI_PIXELS_ROW(name, Step, suffix, T, C)                                             \
    CVCLI_EXPORT void cvcli_pixels_##name##_##suffix##_##C(const void* params, const void* in, \
                                                           void* out, int64_t width) {         \
        cvcli::pixels_row<T, C, cvcli::Step>(params, in, out, width);                          \
    }

#define CVCLI_PIXELS_ROWS(name, Step, suffix, T) \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 1)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 2)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 3)   \
    CVCLI_PIXELS_ROW(name, Step, suffix, T, 4)

// Follows a step's struct; `name` is its header's, or header_Type where there are several in it.
#define CVCLI_PIXELWISE(name, Step)              \
    CVCLI_PIXELS_ROWS(name, Step, u8, uint8_t)   \
    CVCLI_PIXELS_ROWS(name, Step, u16, uint16_t) \
    CVCLI_PIXELS_ROWS(name, Step, f32, float)

#define CVCLI_SAMPLES_ROW(name, Operator, C)                                                    \
    CVCLI_EXPORT void cvcli_samples_##name##_##C(const void* params, const void* in, void* out, \
                                                 int64_t width) {                               \
        cvcli::samples_row<C, cvcli::Samples<cvcli::Operator<float>>>(params, in, out, width);  \
    }

// The row functions of a pointwise operator where it is a step among others.
#define CVCLI_SAMPLES(name, Operator)    \
    CVCLI_SAMPLES_ROW(name, Operator, 1) \
    CVCLI_SAMPLES_ROW(name, Operator, 2) \
    CVCLI_SAMPLES_ROW(name, Operator, 3) \
    CVCLI_SAMPLES_ROW(name, Operator, 4)
