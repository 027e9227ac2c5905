#include "infer/input_file.hpp"

#include <array>
#include <fstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "data/file_list.hpp"
#include "data/llmc_header.hpp"
#include "grid/agreement.hpp"

namespace kzero::infer {

namespace {

constexpr const char* choices_name = "choices";
constexpr const char* automatic_name = "auto";

bool has_llmc_header(const std::string& path) {
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return data::llmc_kind(std::as_bytes(std::span(head))) != nullptr;
}

/// The format by the beginning of the first file, or the usual one.
FileFormat recognised(const std::string& name, std::optional<data::TokenEncoding> usual) {
  ProblemList problems;
  const std::vector<std::string> files = data::expand_files({name}, problems);
  problems.throw_if_any(ExitCode::files);
  if (data::is_choice_file(files.front())) return {{}, true};
  if (has_llmc_header(files.front())) return {deck::DataFormat::llmc};
  KZERO_REQUIRE(usual || !std::ifstream(files.front()).is_open(), ExitCode::usage,
                "{}: has no header that tells its format; name it with --format",
                printable(files.front()));
  return {usual.value_or(deck::DataFormat::llmc)};
}

}  // namespace

std::vector<std::string> file_format_names() {
  std::vector<std::string> names{automatic_name};
  for (const auto& choice : deck::data_formats) names.emplace_back(choice.name);
  names.emplace_back(choices_name);
  return names;
}

FileFormat file_format(const std::string& name, Index token_bytes) {
  if (name == choices_name) return {{}, true};
  for (const auto& choice : deck::data_formats)
    if (choice.name == name) return {data::TokenEncoding(choice.value, token_bytes)};
  return {};
}

InputFile open_input(const grid::Group& world, const std::string& name, const FileFormat& asked,
                     std::optional<data::TokenEncoding> usual, Index vocab) {
  InputFile file{.name = name, .text = nullptr};
  ProblemList problems;
  grid::collectively(world, [&] {
    const bool is_given = asked.text || asked.is_choices;
    const FileFormat format = is_given ? asked : recognised(name, usual);
    if (format.is_choices) {
      file.choices = data::read_choices(name, vocab);
      return;
    }
    file.format = format.text->format;
    file.text = std::make_unique<data::TokenStream>(std::vector{name}, *format.text, vocab);
    KZERO_REQUIRE(file.text->size() >= 2, ExitCode::files,
                  "{}: holds {} tokens, but it takes one to predict another", printable(name),
                  file.text->size());
    file.text->check_tokens(world.rank(), world.size(), problems);
    problems.throw_if_any(ExitCode::files);
  });
  return file;
}

}  // namespace kzero::infer
