#include "infer/input_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "data/document_file.hpp"
#include "data/file_list.hpp"
#include "data/formats.hpp"
#include "grid/agreement.hpp"

namespace kzero::infer {

namespace {

constexpr const char* text_name = "text";
constexpr const char* choices_name = "choices";
constexpr const char* automatic_name = "auto";

/// The format recognized from the beginning or the name of the first file, otherwise the usual one.
FileFormat recognised(const std::string& name,
                      std::optional<data::TokenEncoding> default_encoding) {
  ProblemList problems;
  const std::vector<std::string> files = data::expand_files({name}, problems);
  problems.throw_if_any(ExitCode::files);
  const auto head = first_bytes(files.front(), data::document_header_bytes);
  const auto magic = std::as_bytes(head ? std::span<const char>(*head) : std::span<const char>());
  if (data::is_choice_file(magic)) return {.is_choices = true};
  if (const auto format = data::recognized_format(magic)) return {*format};
  const bool is_bytes = default_encoding && default_encoding->format == deck::DataFormat::bytes;
  if (files.front().ends_with(".txt") && !is_bytes) return {.is_text = true};
  KZERO_REQUIRE(default_encoding || !head, ExitCode::usage,
                "{}: has no header that tells its format; name it with --format",
                printable(files.front()));
  return {default_encoding.value_or(deck::DataFormat::llmc)};
}

std::string text_of(const std::string& path) {
  constexpr Index max_bytes = Index{1} << 30;
  Loaded file = try_load(path, max_bytes);
  KZERO_REQUIRE(file.state != Loaded::State::too_large, ExitCode::files,
                "{}: {} bytes; a plain text has at most 1 GiB (input/prepare.py makes token files)",
                printable(path), file.file_bytes);
  KZERO_REQUIRE(file.state == Loaded::State::good, ExitCode::files, "{}: cannot be read",
                printable(path));
  return std::move(file.bytes);
}

/// The tokens of all files of a pattern, one after the other.
std::vector<Token> tokens_of(const std::string& name, const TokenText& token_text, Index vocab) {
  ProblemList problems;
  std::vector<Token> all;
  const std::vector<std::string> files = data::expand_files({name}, problems);
  problems.throw_if_any(ExitCode::files);
  for (const std::string& path : files) {
    try {
      const std::vector<Token> some = token_text.encode(text_of(path));
      all.insert(all.end(), some.begin(), some.end());
    } catch (const Error& error) {
      const std::string text = error.what();
      throw Error(error.code(), text.starts_with(printable(path))
                                    ? text
                                    : fmt::format("{}: {}", printable(path), text));
    }
  }
  const auto beyond = std::ranges::find_if(all, [&](Token token) { return token >= vocab; });
  KZERO_REQUIRE(beyond == all.end(), ExitCode::files,
                "{}: its tokenizer makes token {}, the model's vocabulary has {}", printable(name),
                beyond == all.end() ? 0 : *beyond, vocab);
  return all;
}

TokenReader reader_of(std::vector<Token> tokens) {
  const auto shared = std::make_shared<const std::vector<Token>>(std::move(tokens));
  return {std::ssize(*shared), [shared](Index begin, Index count, Token* out) {
            std::copy_n(shared->begin() + begin, count, out);
          }};
}

TokenReader reader_of(const std::shared_ptr<const data::TokenStream>& stream) {
  return {stream->size(),
          [stream](Index begin, Index count, Token* out) { stream->read(begin, count, out); }};
}

/// Opens documents of any length.
std::shared_ptr<const data::DocumentFiles> documents_of(const std::string& name,
                                                        deck::DataFormat format, Index vocab) {
  ProblemList problems;
  auto files = std::make_shared<data::DocumentFiles>(
      std::vector{name}, std::numeric_limits<Index>::max(), vocab, problems, format);
  problems.throw_if_any(ExitCode::files);
  KZERO_REQUIRE(files->target_count() > 0, ExitCode::files,
                "{}: none of its {} documents has a target, so there is nothing to score",
                printable(name), files->documents());
  return files;
}

}  // namespace

std::vector<std::string> file_format_names() {
  std::vector<std::string> names{automatic_name, text_name};
  for (const auto& choice : deck::data_formats) names.emplace_back(choice.name);
  names.emplace_back(choices_name);
  return names;
}

FileFormat file_format(const std::string& name, Index token_bytes) {
  if (name == choices_name) return {.is_choices = true};
  if (name == text_name) return {.is_text = true};
  for (const auto& choice : deck::data_formats)
    if (choice.name == name) return {data::TokenEncoding(choice.value, token_bytes)};
  return {};
}

InputFile open_input(const grid::Group& world, const std::string& name, const FileFormat& asked,
                     std::optional<data::TokenEncoding> default_encoding, Index vocab,
                     const OpenTokenText& token_text) {
  InputFile file{.name = name};
  ProblemList problems;
  grid::collectively(world, [&] {
    const FileFormat format = asked.is_given() ? asked : recognised(name, default_encoding);
    if (format.is_choices) {
      file.choices = data::read_choices(name, vocab);
      return;
    }
    if (!format.is_text && deck::is_of_documents(format.tokens->format)) {
      file.format = name_of(format.tokens->format);
      file.documents = documents_of(name, format.tokens->format, vocab);
      file.files = file.documents;
      return;
    }
    if (format.is_text) {
      file.format = text_name;
      file.is_bytes = token_text().is_bytes();
      file.tokens = reader_of(tokens_of(name, token_text(), vocab));
    } else {
      file.format = name_of(format.tokens->format);
      file.is_bytes = format.tokens->format == deck::DataFormat::bytes;
      const auto stream =
          std::make_shared<data::TokenStream>(std::vector{name}, *format.tokens, vocab);
      stream->check_tokens(world.rank(), world.size(), problems);
      file.tokens = reader_of(stream);
      file.files = stream;
    }
    KZERO_REQUIRE(file.tokens->size >= 2, ExitCode::files,
                  "{}: has {} tokens, but at least 2 are needed", printable(name),
                  file.tokens->size);
    problems.throw_if_any(ExitCode::files);
  });
  return file;
}

}  // namespace kzero::infer
