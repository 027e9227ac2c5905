#include "data/foreign_format.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "base/input_file.hpp"
#include "data/document_header.hpp"
#include "data/llmc_header.hpp"
#include "data/megatron_index.hpp"

namespace kzero::data {

namespace {

using namespace std::string_view_literals;

// As numpy defines it in numpy/lib/format.py.
constexpr auto numpy_array = "\x93NUMPY"sv;

constexpr const char* rewrite =
    "which kzero does not read; write its tokens after llm.c's header and set "
    "data.format = \"llmc\"";

bool starts_with(std::span<const std::byte> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

bool is_index_file(const std::filesystem::path& path) {
  const std::string head = first_bytes(path, 16).value_or("");
  return is_megatron_index(std::as_bytes(std::span(head)));
}

}  // namespace

std::string foreign_format(const std::filesystem::path& path, std::span<const std::byte> head,
                           deck::DataFormat format) {
  const bool is_megatron = format == deck::DataFormat::megatron;
  if (llmc_kind(head) != nullptr) return "a token file of llm.c; set data.format = \"llmc\"";
  if (is_document_file(head)) return "a file of documents; set data.format = \"documents\"";
  if (starts_with(head, numpy_array)) return fmt::format("a numpy array, {}", rewrite);
  if (is_megatron_index(head)) {
    return fmt::format("the index of a Megatron-LM dataset; name its .bin instead{}",
                       is_megatron ? "" : ", and set data.format = \"megatron\"");
  }
  const std::filesystem::path index = megatron_index_of(path);
  if (!is_megatron && path.extension() == ".bin" && is_index_file(index)) {
    return fmt::format(
        "the tokens of a Megatron-LM dataset ({} is in the same folder); set data.format = "
        "\"megatron\"",
        index.filename().string());
  }
  return "";
}

}  // namespace kzero::data
