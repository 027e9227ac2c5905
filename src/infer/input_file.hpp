// Files to score: tokens in one of the token formats, plain text, documents, or choices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/choice_file.hpp"
#include "data/document_files.hpp"
#include "data/token_stream.hpp"
#include "grid/group.hpp"
#include "infer/scores.hpp"
#include "infer/token_text.hpp"

namespace kzero::infer {

/// The value of --format: a format of token files, plain text, choices, or none of them.
struct FileFormat {
  std::optional<data::TokenEncoding> tokens{};
  bool is_text = false;
  bool is_choices = false;

  bool is_given() const { return tokens || is_text || is_choices; }
};

/// The names that --format accepts, and the format of a name; raw files have tokens of
/// `token_bytes`.
std::vector<std::string> file_format_names();
FileFormat file_format(const std::string& name, Index token_bytes);

/// An open file: tokens, documents, or choices.
struct InputFile {
  std::string name;                     // as the user gave it: a path or a pattern
  std::string format{};                 // by name
  bool is_bytes = false;                // each token is a byte
  std::optional<TokenReader> tokens{};  // none: documents or choices
  std::shared_ptr<const data::DocumentFiles> documents{};  // null: tokens or choices
  std::vector<data::ChoiceExample> choices{};              // of a single file
  std::shared_ptr<const data::DataFiles> files{};          // of token files or documents
};

/// Returns the encoder for plain text; opened when the first file needs it.
using OpenTokenText = std::function<const TokenText&()>;

/// Opens a path or a pattern of files and checks all its tokens; each rank checks its part. If no
/// format is given, it is recognized by a header of llm.c or of documents. Without such a header, a
/// name that ends with .txt is plain text unless the tokens of `default_encoding` are bytes, and
/// everything else is `default_encoding`. Every rank stores the tokens of a plain text, which may
/// have at most 1 GiB; each file is encoded separately. Throws AgreedError(files) for files that
/// cannot be read, are damaged, have tokens of `vocab` or more, or have an unknown format.
/// Collective over `world`.
InputFile open_input(const grid::Group& world, const std::string& name, const FileFormat& format,
                     std::optional<data::TokenEncoding> default_encoding, Index vocab,
                     const OpenTokenText& token_text);

}  // namespace kzero::infer
