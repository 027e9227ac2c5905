// Safetensors files: parsed in memory; where that is accepted, all floats are read from a file.
#include <algorithm>
#include <span>
#include <vector>

#include "convert/safetensors.hpp"
#include "fuzz.hpp"

namespace {

using namespace kzero;

void read_floats(const convert::SafetensorsFile& file) {
  constexpr Index max = 1 << 16;
  std::vector<float> values;
  for (const convert::Tensor& tensor : file.tensors()) {
    const checkpoint::Range range{0, std::min(tensor.elements(), max)};
    values.resize(range.count);
    fuzz::accepts([&] { file.read(tensor, range, values); });  // refuses other dtypes than floats
    fuzz::require(file.find(tensor.name) != nullptr, "a tensor is found by its name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFile memory;
  std::vector<convert::Tensor> tensors;
  const auto parse = [&] {
    const auto bytes = std::as_bytes(std::span(data, size));
    tensors = convert::parse_safetensors(bytes, static_cast<Index>(size), "fuzz").tensors;
  };
  if (!fuzz::accepts(parse)) return 0;
  for (const convert::Tensor& tensor : tensors) {
    fuzz::require(0 <= tensor.begin && tensor.begin <= tensor.end &&
                      tensor.end <= static_cast<Index>(size) && tensor.elements() >= 0,
                  "tensors lie within the file");
  }
  memory.store(data, size);
  read_floats(convert::SafetensorsFile(memory.path()));
  return 0;
}
