// The rows of new tokens in tables that have a row for each token of a vocabulary.
#pragma once

#include <vector>

#include "convert/safetensors.hpp"

namespace kzero::convert {

/// Returns the mean of the rows of a tensor [rows, width], summed in fp64 in the order of the rows:
/// a function of the file alone. Throws Error(files) for values that are not finite. Reads the
/// tensor in parts of a few MiB.
std::vector<float> mean_row(const SafetensorsFile& file, const Tensor& tensor);

}  // namespace kzero::convert
