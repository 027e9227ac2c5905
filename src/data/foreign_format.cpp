#include "data/foreign_format.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string_view>

#include "data/llmc_header.hpp"

namespace kzero::data {

namespace {

using namespace std::string_view_literals;

// Magic numbers, as defined by Megatron-LM in megatron/core/datasets/indexed_dataset.py, and by
// numpy in numpy/lib/format.py.
constexpr auto megatron_index = "MMIDIDX\0\0"sv;
constexpr auto numpy_array = "\x93NUMPY"sv;

constexpr const char* rewrite =
    "which kzero does not read; write its tokens behind llm.c's header and set "
    "data.format = \"llmc\"";

bool starts_with(std::span<const std::byte> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

bool is_megatron_index(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, megatron_index.size()> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data(), head.size()) == megatron_index;
}

}  // namespace

std::string foreign_format(const std::filesystem::path& path, std::span<const std::byte> head) {
  if (llmc_kind(head) != nullptr) return "a token file of llm.c; set data.format = \"llmc\"";
  if (starts_with(head, numpy_array)) return fmt::format("a numpy array, {}", rewrite);
  if (starts_with(head, megatron_index))
    return fmt::format("the index of a Megatron-LM dataset, {}", rewrite);
  auto index = path;
  index.replace_extension(".idx");
  if (path.extension() == ".bin" && is_megatron_index(index))
    return fmt::format("the tokens of a Megatron-LM dataset ({} lies beside it), {}",
                       index.filename().string(), rewrite);
  return "";
}

}  // namespace kzero::data
