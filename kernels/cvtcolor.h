// Conversions between colour spaces, one struct each.
#pragma once

#include "core/color/channels.h"
#include "core/color/hue.h"
#include "core/color/lab.h"
#include "core/color/luma.h"

namespace cvcli {

using ToHsv = ToHue<Solid::kHsv>;
using ToHls = ToHue<Solid::kHls>;
using FromHsv = FromHue<Solid::kHsv>;
using FromHls = FromHue<Solid::kHls>;
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
CVCLI_PIXELWISE(cvtcolor_ToHls, ToHls)
CVCLI_PIXELWISE(cvtcolor_FromHsv, FromHsv)
CVCLI_PIXELWISE(cvtcolor_FromHls, FromHls)
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
