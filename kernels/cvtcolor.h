// Conversions between colour spaces, one struct each.
#pragma once

#include "core/color/channels.h"
#include "core/color/hue.h"
#include "core/color/lab.h"
#include "core/color/luma.h"

namespace cvcli {

// The steps of a whole turn are OpenCV's.
using ToHsv = ToHue<Solid::kHsv, 180>;
using ToHsvFull = ToHue<Solid::kHsv, 256>;
using ToHls = ToHue<Solid::kHls, 180>;
using ToHlsFull = ToHue<Solid::kHls, 255>;
using FromHsv = FromHue<Solid::kHsv, 180>;
using FromHsvFull = FromHue<Solid::kHsv, 255>;
using FromHls = FromHue<Solid::kHls, 180>;
using FromHlsFull = FromHue<Solid::kHls, 255>;
using ToYcrcb = ToLuma<false>;
using ToYuv = ToLuma<true>;
using FromYcrcb = FromLuma<false>;
using FromYuv = FromLuma<true>;
using ToXyz = Xyz<false>;
using FromXyz = Xyz<true>;
using ToCielab = ToLab<false>;
using ToLuv = ToLab<true>;
using FromCielab = FromLab<false>;
using FromLuv = FromLab<true>;

}  // namespace cvcli

CVCLI_PIXELWISE(cvtcolor_Swapped, Swapped)
CVCLI_PIXELWISE(cvtcolor_WithAlpha, WithAlpha)
CVCLI_PIXELWISE(cvtcolor_WithoutAlpha, WithoutAlpha)
CVCLI_PIXELWISE(cvtcolor_ToGray, ToGray)
CVCLI_PIXELWISE(cvtcolor_FromGray, FromGray)
CVCLI_PIXELWISE(cvtcolor_ToHsv, ToHsv)
CVCLI_PIXELWISE(cvtcolor_ToHsvFull, ToHsvFull)
CVCLI_PIXELWISE(cvtcolor_ToHls, ToHls)
CVCLI_PIXELWISE(cvtcolor_ToHlsFull, ToHlsFull)
CVCLI_PIXELWISE(cvtcolor_FromHsv, FromHsv)
CVCLI_PIXELWISE(cvtcolor_FromHsvFull, FromHsvFull)
CVCLI_PIXELWISE(cvtcolor_FromHls, FromHls)
CVCLI_PIXELWISE(cvtcolor_FromHlsFull, FromHlsFull)
CVCLI_PIXELWISE(cvtcolor_ToYcrcb, ToYcrcb)
CVCLI_PIXELWISE(cvtcolor_ToYuv, ToYuv)
CVCLI_PIXELWISE(cvtcolor_FromYcrcb, FromYcrcb)
CVCLI_PIXELWISE(cvtcolor_FromYuv, FromYuv)
CVCLI_PIXELWISE(cvtcolor_ToXyz, ToXyz)
CVCLI_PIXELWISE(cvtcolor_FromXyz, FromXyz)
CVCLI_PIXELWISE(cvtcolor_ToCielab, ToCielab)
CVCLI_PIXELWISE(cvtcolor_ToLuv, ToLuv)
CVCLI_PIXELWISE(cvtcolor_FromCielab, FromCielab)
CVCLI_PIXELWISE(cvtcolor_FromLuv, FromLuv)
