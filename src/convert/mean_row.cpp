#include "convert/mean_row.hpp"

#include <algorithm>

#include "convert/finite.hpp"

namespace kzero::convert {

std::vector<float> mean_row(const SafetensorsFile& file, const Tensor& tensor) {
  constexpr Index part_elements = Index{1} << 20;
  const Index rows = tensor.shape.front(), width = tensor.shape.back();
  const Index rows_of_part = std::max<Index>(1, part_elements / width);
  std::vector<double> sums(static_cast<std::size_t>(width));
  std::vector<float> part;
  for (Index row = 0; row < rows; row += rows_of_part) {
    const checkpoint::Range range{row * width, std::min(rows_of_part, rows - row) * width};
    part.resize(range.count);
    file.read(tensor, range, part);
    require_finite(file.path().string(), {tensor.name, tensor.shape}, range, part);
    for (std::size_t i = 0; i < part.size(); ++i) sums[i % sums.size()] += part[i];
  }
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  return mean;
}

}  // namespace kzero::convert
