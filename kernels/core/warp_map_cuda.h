// Where the pixels of a tile come from: places by row and column, and what encloses them all.
#pragma once

#include "core/arith.h"
#include "core/warp.h"

namespace cvcli {

struct WarpTile {
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
};

// The part of the source, borders included, that a tile needs; `known` if it is sure.
struct Box {
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
    bool known;
    CVCLI_FN bool misses(const Frame& source) const {
        return known &&
               (x >= source.width || y >= source.height || x + width <= 0 || y + height <= 0);
    }
};

// The corners of a tile in a box, in order around it, and how far from them pixels may lie.
struct Outline {
    float x[4];
    float y[4];
    float slack;
};

// A box around places from (x0, y0) to (x1, y1); it starts at a multiple of four pixels.
template <int Filter>
CVCLI_FN Box box_around(int32_t x0, int32_t y0, int32_t x1, int32_t y1, bool known) {
    using R = Reach<Filter>;
    const int32_t x = (x0 + R::kFirst) & ~3;
    const int32_t y = y0 + R::kFirst;
    return {x, y, x1 + R::kLast + 1 - x, y1 + R::kLast + 1 - y, known};
}

// A number that the compiler is not to look into: it would shift 64 bits to multiply half of them.
CVCLI_FN int32_t just(int32_t value) {
    asm("" : "+r"(value));
    return value;
}

CVCLI_FN int32_t whole_of(float at) {
    return static_cast<int32_t>(floor_of(at));
}

template <int Shape, int Wide, int High>
struct WarpMap;

template <int Wide, int High>
struct WarpMap<kAffine, Wide, High> {
    struct Memory {};
    struct Step {
        int64_t x;
        int64_t y;
        CVCLI_FN void move(const Step& by) {
            x += by.x;
            y += by.y;
        }
    };
    using At = Step;
    // Of the first pixel, from there to the last one of its row, and to that of its column.
    struct Side {
        float x;
        float y;
    };
    template <int Bits>
    static constexpr int kWidest = 1 << 20;
    const int64_t* fixed;
    Step first;
    Side wide;
    Side high;

    CVCLI_FN WarpMap(const WarpParams& params, const WarpTile& tile, int64_t half, Memory&)
        : fixed(params.fixed) {
        const int64_t x = params.frame.x0 + tile.x;
        const int64_t y = params.frame.y0 + tile.y;
        first.x = fixed[0] * x + fixed[1] * y + fixed[2] + half;
        first.y = fixed[3] * x + fixed[4] * y + fixed[5] + half;
        wide = side(params.map, tile.width - 1);
        high = side(params.map + 1, tile.height - 1);
    }
    CVCLI_FN Step rows(int count) const { return {fixed[1] * count, fixed[4] * count}; }
    CVCLI_FN At at(int y, int x) const {
        return {first.x + fixed[1] * y + fixed[0] * x, first.y + fixed[4] * y + fixed[3] * x};
    }
    CVCLI_FN At at(int y, int x, const Box& box) const {
        At near = at(y, x);
        near.x -= int64_t{box.x} << 32;
        near.y -= int64_t{box.y} << 32;
        return near;
    }
    // A place in the box, each number so much too large.
    template <int Bits>
    static constexpr int kExcess = 0;
    template <int Filter, int Bits>
    CVCLI_FN Place near_place(const At& at, const Box&) const {
        const Place place = affine_place(at.x, at.y);
        return {just(place.x), just(place.y), place.fx, place.fy};
    }
    template <int Filter>
    CVCLI_FN Place far_place(const At& at) const {
        return affine_place(at.x, at.y);
    }
    // The sides are rounded, so that the box is a little larger than it has to be.
    template <int Filter>
    CVCLI_FN Box box() const {
        const int32_t x = whole(first.x), y = whole(first.y);
        return box_around<Filter>(x + least(wide.x, high.x), y + least(wide.y, high.y),
                                  x + most(wide.x, high.x), y + most(wide.y, high.y), true);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        const float x = inside(first.x, box.x), y = inside(first.y, box.y);
        return {{x, x + wide.x, x + wide.x + high.x, x + high.x},
                {y, y + wide.y, y + wide.y + high.y, y + high.y},
                0.25f};
    }

  private:
    CVCLI_FN static Side side(const double* map, int count) {
        return {static_cast<float>(map[0]) * count, static_cast<float>(map[3]) * count};
    }
    CVCLI_FN static int32_t whole(int64_t at) { return static_cast<int32_t>(at >> 32); }
    // Whole numbers at or below, and at or above, each place on the way, 1 / 16 or more apart.
    CVCLI_FN static float error(float a, float b) {
        return 0.0625f + (fabsf(a) + fabsf(b)) * (1.0f / 1048576.0f);
    }
    CVCLI_FN static int32_t least(float a, float b) {
        return whole_of(fminf(a, 0.0f) + fminf(b, 0.0f) - error(a, b));
    }
    CVCLI_FN static int32_t most(float a, float b) {
        return whole_of(fmaxf(a, 0.0f) + fmaxf(b, 0.0f) + error(a, b)) + 1;
    }
    CVCLI_FN static float inside(int64_t at, int32_t from) {
        const int64_t rest = at - (int64_t{from} << 32);
        return static_cast<float>(static_cast<int32_t>(rest >> 16)) * (1.0f / 65536.0f);
    }
};

// Rows start at each anchor that a tile may have a column of.
template <int Wide, int High>
struct WarpMap<kPerspective, Wide, High> {
    static constexpr int kAnchors = (Wide - 1) / kAnchor + 2;
    // Of corners, in order around the tile: their places, w, and the larger of what it divides.
    struct Memory {
        float4 origins[High][kAnchors];
        float4 corners[4];
    };
    struct Step {
        int rows;
    };
    struct At {
        const float4* origin;
        Homogeneous step;
        CVCLI_FN void move(const Step& by) { origin += kAnchors * by.rows; }
    };
    template <int Bits>
    static constexpr int kWidest = 1 << (23 - Bits);
    const WarpParams& params;
    WarpTile tile;
    int32_t x;
    int32_t y;
    Memory& memory;

    CVCLI_FN WarpMap(const WarpParams& from, const WarpTile& part, int64_t, Memory& room)
        : params(from),
          tile(part),
          x(from.frame.x0 + part.x),
          y(from.frame.y0 + part.y),
          memory(room) {
        for (int i = threadIdx.x; i < kAnchors * tile.height; i += blockDim.x) {
            const int row = i / kAnchors, number = i % kAnchors;
            const int32_t anchor = x - x % kAnchor + number * kAnchor;
            const Homogeneous at = origin_at(params, anchor, y + row);
            memory.origins[row][number] = {at.x, at.y, at.w, 0.0f};
        }
        if (threadIdx.x < 4) memory.corners[threadIdx.x] = corner(threadIdx.x);
        __syncthreads();
    }
    CVCLI_FN Step rows(int count) const { return {count}; }
    CVCLI_FN At at(int down, int right) const {
        const int32_t from = x % kAnchor + right;
        return {&memory.origins[down][from / kAnchor], step_by(params, from % kAnchor)};
    }
    CVCLI_FN At at(int down, int right, const Box&) const { return at(down, right); }
    // Rounded down to 2^-Bits as floats are that lie so far apart, and taken from their digits,
    // exponent and all.
    template <int Bits>
    static constexpr int kExcess = (150 - Bits) << (23 - Bits);
    template <int Filter, int Bits>
    CVCLI_FN Place near_place(const At& at, const Box& box) const {
        constexpr float first = 1 << (23 - Bits);
        const float4 from = *at.origin;
        const float w = from.z + at.step.w;
        const float guess = near_reciprocal(w);
        const float scale = fmaf(guess, fmaf(-w, guess, 1.0f), guess);
        const float x = (from.x + at.step.x) * scale;
        const float y = (from.y + at.step.y) * scale;
        return place_of<Filter, Bits>(bits_of(__fadd_rd(x, first - static_cast<float>(box.x))),
                                      bits_of(__fadd_rd(y, first - static_cast<float>(box.y))));
    }
    template <int Filter>
    CVCLI_FN Place far_place(const At& at) const {
        const float4 from = *at.origin;
        return perspective_place<Filter, false>({from.x, from.y, from.z}, at.step);
    }
    // Between the corners, whose denominators must be of one sign and not too different: only then
    // do places lie within two pixels of the straight lines from corner to corner.
    template <int Filter>
    CVCLI_FN Box box() const {
        if (!is_known()) return {0, 0, 0, 0, false};
        float4 low = memory.corners[0], high = low;
#pragma unroll
        for (int i = 1; i < 4; ++i) {
            const float4 at = memory.corners[i];
            low.x = smaller(low.x, at.x);
            low.y = smaller(low.y, at.y);
            high.x = larger(high.x, at.x);
            high.y = larger(high.y, at.y);
        }
        return box_around<Filter>(whole_of(low.x) - 2, whole_of(low.y) - 2, whole_of(high.x) + 2,
                                  whole_of(high.y) + 2, true);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        Outline outline = {{}, {}, 2.0f};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            outline.x[i] = memory.corners[i].x - static_cast<float>(box.x);
            outline.y[i] = memory.corners[i].y - static_cast<float>(box.y);
        }
        return outline;
    }

  private:
    CVCLI_FN float4 corner(int i) const {
        const int32_t right = i == 1 || i == 2 ? tile.width - 1 : 0;
        const int32_t down = i < 2 ? 0 : tile.height - 1;
        const Homogeneous at = origin_at(params, x + right, y + down);
        const float most = larger(fabsf(at.x), fabsf(at.y));
        return {at.x / at.w, at.y / at.w, at.w, most};
    }
    CVCLI_FN bool is_known() const {
        float most = 0.0f, least = 3.0e38f, far = 0.0f;
        bool positive = true, negative = true;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float4 at = memory.corners[i];
            positive = positive && at.z > 0.0f;
            negative = negative && at.z < 0.0f;
            most = larger(most, fabsf(at.z));
            least = smaller(least, fabsf(at.z));
            far = larger(far, at.w);
        }
        const float step = length(params.map[0]) + length(params.map[3]);
        return (positive || negative) && least > 1.0e-30f && most < 1.0e30f &&
               most + kAnchor * length(params.map[6]) <= 64.0f * least &&
               far + kAnchor * step <= 0.75f * kNear * least;
    }
    CVCLI_FN static float length(double value) { return fabsf(static_cast<float>(value)); }
    template <int Filter, int Bits>
    CVCLI_FN static Place place_of(uint32_t x, uint32_t y) {
        constexpr uint32_t mask = (1u << Bits) - 1;
        const int round = Filter == kNearest ? 1 << (Bits - 1) : 0;
        return {static_cast<int32_t>((x + round) >> Bits),
                static_cast<int32_t>((y + round) >> Bits), (x & mask) << (24 - Bits),
                (y & mask) << (24 - Bits)};
    }
};

}  // namespace cvcli
