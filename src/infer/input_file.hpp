// Files to score: texts in one of the token formats, or choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/choice_file.hpp"
#include "data/token_stream.hpp"
#include "grid/group.hpp"

namespace kzero::infer {

/// The value of --format: a format of texts, choices, or neither.
struct FileFormat {
  std::optional<data::TokenEncoding> text{};
  bool is_choices = false;
};

/// The names that --format may have, and the format of one of them, with tokens of `token_bytes`
/// if it is the raw one.
std::vector<std::string> file_format_names();
FileFormat file_format(const std::string& name, Index token_bytes);

/// A file that is open: one of the two.
struct InputFile {
  std::string name;                            // as the user gave it: a path or a pattern
  deck::DataFormat format{};                   // of a text
  std::unique_ptr<data::TokenStream> text;     // null: choices
  std::vector<data::ChoiceExample> choices{};  // of one file
};

/// Opens a path or a pattern of files and checks all its tokens, each rank its part. Without a
/// format it is recognised by a header of llm.c's, and is `usual` without one. Throws
/// AgreedError(files) for files that cannot be read, are damaged, have tokens of `vocab` or more,
/// or of which nobody knows the format. Collective over `world`.
InputFile open_input(const grid::Group& world, const std::string& name, const FileFormat& format,
                     std::optional<data::TokenEncoding> usual, Index vocab);

}  // namespace kzero::infer
