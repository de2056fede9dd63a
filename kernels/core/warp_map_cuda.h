// Where the pixels of a tile come from: places by row and column, and what encloses them all.
#pragma once

#include "core/warp.h"

namespace cvcli {

struct Tile {
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

template <int Shape, int High>
struct WarpMap;

template <int High>
struct WarpMap<kAffine, High> {
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
    const int64_t* fixed;
    Step first;
    int32_t width;
    int32_t height;

    CVCLI_FN WarpMap(const WarpParams& params, const Tile& tile, int64_t half, Memory&)
        : fixed(params.fixed), width(tile.width), height(tile.height) {
        const int64_t x = params.frame.x0 + tile.x;
        const int64_t y = params.frame.y0 + tile.y;
        first.x = fixed[0] * x + fixed[1] * y + fixed[2] + half;
        first.y = fixed[3] * x + fixed[4] * y + fixed[5] + half;
    }
    CVCLI_FN Step column(int x) const { return {fixed[0] * x, fixed[3] * x}; }
    CVCLI_FN Step rows(int count) const { return {fixed[1] * count, fixed[4] * count}; }
    CVCLI_FN At at(int y, int x) const {
        return {first.x + fixed[1] * y + fixed[0] * x, first.y + fixed[4] * y + fixed[3] * x};
    }
    template <int Filter, bool Near>
    CVCLI_FN Place place(const At& at) const {
        return affine_place(at.x, at.y);
    }
    template <int Filter>
    CVCLI_FN Box box() const {
        const Step wide = column(width - 1);
        const Step high = rows(height - 1);
        const int64_t zero = 0;
        return box_around<Filter>(whole(first.x + smaller(wide.x, zero) + smaller(high.x, zero)),
                                  whole(first.y + smaller(wide.y, zero) + smaller(high.y, zero)),
                                  whole(first.x + larger(wide.x, zero) + larger(high.x, zero)),
                                  whole(first.y + larger(wide.y, zero) + larger(high.y, zero)),
                                  true);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        Outline outline = {{}, {}, 0.25f};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const At corner = at(i < 2 ? 0 : height - 1, i == 1 || i == 2 ? width - 1 : 0);
            outline.x[i] = inside(corner.x, box.x);
            outline.y[i] = inside(corner.y, box.y);
        }
        return outline;
    }

  private:
    CVCLI_FN static int32_t whole(int64_t at) { return static_cast<int32_t>(at >> 32); }
    CVCLI_FN static float inside(int64_t at, int32_t from) {
        const int64_t rest = at - (int64_t{from} << 32);
        return static_cast<float>(static_cast<int32_t>(rest >> 16)) * (1.0f / 65536.0f);
    }
};

// Rows start in the tile's first column or at the anchor within it.
template <int High>
struct WarpMap<kPerspective, High> {
    struct Memory {
        float4 origins[High][2];
    };
    struct Step {
        int rows;
    };
    struct At {
        const float4* origin;
        Homogeneous step;
        CVCLI_FN void move(const Step& by) { origin += 2 * by.rows; }
    };
    const WarpParams& params;
    Tile tile;
    int32_t x;
    int32_t y;
    float4 (*origins)[2];

    CVCLI_FN WarpMap(const WarpParams& from, const Tile& part, int64_t, Memory& memory)
        : params(from),
          tile(part),
          x(from.frame.x0 + part.x),
          y(from.frame.y0 + part.y),
          origins(memory.origins) {
        for (int i = threadIdx.x; i < 2 * tile.height; i += blockDim.x) {
            const int32_t anchor = x - x % kAnchor + (i & 1) * kAnchor;
            const Homogeneous at = origin_at(params, anchor, y + i / 2);
            origins[i / 2][i & 1] = {at.x, at.y, at.w, 0.0f};
        }
        __syncthreads();
    }
    CVCLI_FN Step rows(int count) const { return {count}; }
    CVCLI_FN At at(int down, int right) const {
        const int32_t from = x % kAnchor + right;
        return {&origins[down][from / kAnchor], step_by(params, from % kAnchor)};
    }
    template <int Filter, bool Near>
    CVCLI_FN Place place(const At& at) const {
        const float4 from = *at.origin;
        return perspective_place<Filter, Near>({from.x, from.y, from.z}, at.step);
    }
    // Between the corners, whose denominators must be of one sign and not too different: only then
    // do places lie within two pixels of the straight lines from corner to corner.
    template <int Filter>
    CVCLI_FN Box box() const {
        Corners corners;
        const bool known = find(corners);
        const int32_t x0 = static_cast<int32_t>(floor_of(corners.low_x)) - 2;
        const int32_t y0 = static_cast<int32_t>(floor_of(corners.low_y)) - 2;
        const int32_t x1 = static_cast<int32_t>(floor_of(corners.high_x)) + 2;
        const int32_t y1 = static_cast<int32_t>(floor_of(corners.high_y)) + 2;
        return box_around<Filter>(x0, y0, x1, y1, known);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        Corners corners;
        find(corners);
        Outline outline = {{}, {}, 2.0f};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            outline.x[i] = corners.x[i] - static_cast<float>(box.x);
            outline.y[i] = corners.y[i] - static_cast<float>(box.y);
        }
        return outline;
    }

  private:
    struct Corners {
        float x[4];
        float y[4];
        float low_x, high_x, low_y, high_y;
    };
    // Corners in order around the tile; all of them (0, 0) where they say nothing.
    CVCLI_FN bool find(Corners& corners) const {
        float most = 0.0f, least = 3.0e38f, far = 0.0f;
        bool negative = false, positive = false;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int32_t right = i == 1 || i == 2 ? tile.width - 1 : 0;
            const int32_t down = i < 2 ? 0 : tile.height - 1;
            const Homogeneous at = origin_at(params, x + right, y + down);
            const float w = at.w < 0.0f ? -at.w : at.w;
            negative |= !(at.w > 0.0f);
            positive |= !(at.w < 0.0f);
            most = larger(most, w);
            least = smaller(least, w);
            far = larger(far, larger(at.x < 0.0f ? -at.x : at.x, at.y < 0.0f ? -at.y : at.y));
            corners.x[i] = at.x / at.w;
            corners.y[i] = at.y / at.w;
        }
        const float step = magnitude(params.map[0]) + magnitude(params.map[3]);
        const bool known = negative != positive &&
                           most + kAnchor * magnitude(params.map[6]) <= 64.0f * least &&
                           far + kAnchor * step <= 0.75f * kNear * least;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!known) corners.x[i] = corners.y[i] = 0.0f;
        }
        corners.low_x =
            smaller(smaller(corners.x[0], corners.x[1]), smaller(corners.x[2], corners.x[3]));
        corners.high_x =
            larger(larger(corners.x[0], corners.x[1]), larger(corners.x[2], corners.x[3]));
        corners.low_y =
            smaller(smaller(corners.y[0], corners.y[1]), smaller(corners.y[2], corners.y[3]));
        corners.high_y =
            larger(larger(corners.y[0], corners.y[1]), larger(corners.y[2], corners.y[3]));
        return known;
    }
    CVCLI_FN static float magnitude(double value) {
        return static_cast<float>(value < 0.0 ? -value : value);
    }
};

}  // namespace cvcli
