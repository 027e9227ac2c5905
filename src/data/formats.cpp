#include "data/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "data/document_file.hpp"
#include "data/megatron_index.hpp"

namespace kzero::data {

namespace {

using deck::DataFormat;
using namespace std::string_view_literals;

TokenLayout bytes_layout(const OpenedFile& file, Index /*raw_bytes*/) {
  return {.count = file.bytes};
}

TokenLayout raw_layout(const OpenedFile& file, Index width) {
  KZERO_REQUIRE(
      file.bytes % width == 0, ExitCode::files,
      "{}: {} bytes are not a multiple of the token width, {} bytes; the file is truncated, or "
      "its tokens have another width",
      file.path, file.bytes, width);
  return {.width = width, .count = file.bytes / width};
}

/// One of the two kinds of llm.c's token files: for the tokenizers of GPT-2 and of Llama 3.
struct LlmcKind {
  std::int32_t magic, version;
  Index width;  // bytes of a token
};

constexpr LlmcKind kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr std::size_t magic_bytes = sizeof kinds[0].magic;

/// The kind that has a file's first bytes as its magic number; null if there is none.
const LlmcKind* kind_of(std::span<const std::byte> head) {
  if (head.size() < magic_bytes) return nullptr;
  for (const LlmcKind& kind : kinds) {
    if (std::memcmp(head.data(), &kind.magic, magic_bytes) == 0) return &kind;
  }
  return nullptr;
}

bool is_llmc_file(std::span<const std::byte> head) { return kind_of(head) != nullptr; }

/// It is an error if the file does not begin with a supported header, or if its size differs from
/// the size in the header.
TokenLayout llmc_layout(const OpenedFile& file, Index /*raw_bytes*/) {
  const auto& [path, head, bytes] = file;
  KZERO_REQUIRE(head.size() >= llmc_header_bytes, ExitCode::files,
                "{}: {} bytes are too short for the {} byte header of format \"llmc\"", path, bytes,
                llmc_header_bytes);
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), head.data(), sizeof header);
  const LlmcKind* kind = kind_of(head);
  KZERO_REQUIRE(
      kind != nullptr, ExitCode::files,
      "{}: starts with {}, but a file of format \"llmc\" has a header of {} bytes before its "
      "tokens: {} and {} for 16-bit tokens or {} and {} for 32-bit tokens, the number of tokens, "
      "all as 32-bit integers, and then zeros",
      path, header[0], llmc_header_bytes, kinds[0].magic, kinds[0].version, kinds[1].magic,
      kinds[1].version);
  KZERO_REQUIRE(header[1] == kind->version, ExitCode::files,
                "{}: is version {} of format \"llmc\" with {}-bit tokens, but only version {} is "
                "read",
                path, header[1], 8 * kind->width, kind->version);
  TokenLayout layout{llmc_header_bytes, kind->width, header[2]};
  const Index expected = layout.offset + layout.width * layout.count;
  KZERO_REQUIRE(layout.count >= 0 && bytes == expected, ExitCode::files,
                "{}: its header counts {} tokens of {} bytes, which makes {} bytes, but the file "
                "has {}; it is truncated or damaged: write it again",
                path, layout.count, layout.width, expected, bytes);
  return layout;
}

constexpr Format formats[] = {
    {DataFormat::bytes, "", nullptr, bytes_layout, true},
    {DataFormat::llmc, "a token file of llm.c", is_llmc_file, llmc_layout, true},
    {DataFormat::megatron, "the tokens of a Megatron-LM dataset", nullptr, megatron_layout, false},
    {DataFormat::raw, "", nullptr, raw_layout, false},
    {DataFormat::documents, "a file of documents",
     [](std::span<const std::byte> head) { return is_document_file(head) && !is_pair_file(head); },
     nullptr, true},
    {DataFormat::pairs, "a file of pairs of documents", is_pair_file, nullptr, true},
};

constexpr bool has_a_line(DataFormat format) {
  return std::ranges::find(formats, format, &Format::value) != std::end(formats);
}
static_assert(std::ranges::all_of(deck::data_formats, has_a_line, &deck::Choice<DataFormat>::value),
              "each of deck::data_formats needs a line in this table");

// As numpy defines it in numpy/lib/format.py.
constexpr auto numpy_array = "\x93NUMPY"sv;

bool starts_with(std::span<const std::byte> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

bool is_index_file(const std::filesystem::path& path) {
  const std::string head = first_bytes(path, 16).value_or("");
  return is_megatron_index(std::as_bytes(std::span(head)));
}

std::string advice(DataFormat format) {
  return fmt::format("set data.format = \"{}\"", name_of(format));
}

/// Describes a file of another format than `format`, and tells what to do instead, as a phrase that
/// follows "looks like ". Empty for a file that does not look like a token file.
std::string look(const std::filesystem::path& path, std::span<const std::byte> head,
                 DataFormat format) {
  if (const auto found = recognized_format(head))
    return fmt::format("{}; {}", format_of(*found).text, advice(*found));
  if (starts_with(head, numpy_array)) {
    return "a numpy array, which kzero does not read; write its tokens after llm.c's header and " +
           advice(DataFormat::llmc);
  }
  const bool is_megatron = format == DataFormat::megatron;
  if (is_megatron_index(head)) {
    return fmt::format("the index of a Megatron-LM dataset; name its .bin instead{}",
                       is_megatron ? "" : ", and " + advice(DataFormat::megatron));
  }
  const std::filesystem::path index = megatron_index_of(path);
  if (is_megatron || path.extension() != ".bin" || !is_index_file(index)) return "";
  return fmt::format("{} ({} is in the same folder); {}", format_of(DataFormat::megatron).text,
                     index.filename().string(), advice(DataFormat::megatron));
}

}  // namespace

const Format& format_of(DataFormat format) {
  const auto* found = std::ranges::find(formats, format, &Format::value);
  KZERO_EXPECT(found != std::end(formats));
  return *found;
}

std::optional<DataFormat> recognized_format(std::span<const std::byte> head) {
  for (const Format& format : formats) {
    if (format.has_magic != nullptr && format.has_magic(head)) return format.value;
  }
  return std::nullopt;
}

void refuse_other_format(const std::string& path, std::span<const std::byte> head,
                         DataFormat format) {
  if (recognized_format(head) == format) return;
  const std::string found = look(path, head, format);
  KZERO_REQUIRE(found.empty(), ExitCode::files, "{}: data.format = \"{}\", but it looks like {}",
                path, name_of(format), found);
}

}  // namespace kzero::data
