// Checks that weights are numbers. NaN and infinity are found on import and export, and so are
// values that a narrower type would turn into infinity.
#pragma once

#include <span>
#include <string>

#include "checkpoint/format/manifest.hpp"

namespace kzero::convert {

/// Throws Error(files) with tensor and position of the first value that is NaN or infinite.
/// `values` are those in `range` of the parameter; `origin` is their file or folder.
void require_finite(const std::string& origin, const checkpoint::Parameter& parameter,
                    checkpoint::Range range, std::span<const float> values);

/// Throws Error(files) in the same way for the first value that rounds to infinity in `dtype`.
void require_in_range(const std::string& origin, const checkpoint::Parameter& parameter,
                      checkpoint::Range range, std::span<const float> values, Dtype dtype);

}  // namespace kzero::convert
