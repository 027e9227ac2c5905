// The table of the formats of data files: how a file of each is recognized, and where its tokens
// are. deck::data_formats has their names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// The deck's description of how files store tokens.
struct TokenEncoding {
  /// `raw_bytes`, 2 or 4, is the width of a token in format "raw"; the other formats ignore it.
  TokenEncoding(deck::DataFormat how, Index raw_bytes = 2) : format(how), token_bytes(raw_bytes) {}

  deck::DataFormat format;
  Index token_bytes;
};

/// The place of the tokens, which are contiguous, in a file.
struct TokenLayout {
  Index offset = 0;        // bytes before the first token
  Index width = 1;         // bytes of a token: 1, 2 or 4; little-endian
  Index count = 0;         // tokens
  bool is_signed = false;  // stored as signed integers; negative values are not tokens
};

/// The header of llm.c's files, as dev/data/data_common.py of llm.c writes it: 256 int32, which
/// begin with a magic number, a version and the number of tokens, or of examples (choice_file.hpp).
inline constexpr Index llmc_header_bytes = 256 * 4;

/// An opened file: its size, and its first bytes, as many as the longest header has, or all.
struct OpenedFile {
  const std::string& path;
  std::span<const std::byte> head;
  Index bytes;
};

/// What distinguishes the files of a format.
struct Format {
  deck::DataFormat value;
  std::string_view text;                          // in messages; empty: no file is recognized
  bool (*has_magic)(std::span<const std::byte>);  // in the first bytes of a file; null: none has
  /// Returns the layout of a token file. Throws Error(files), naming the path, if it breaks the
  /// format. Null: DocumentFile reads them.
  TokenLayout (*layout)(const OpenedFile& file, Index raw_bytes);
  bool has_own_width;  // the file's header or the format itself tells how tokens are stored
};

/// The line of a format.
const Format& format_of(deck::DataFormat format);

/// The format whose magic number a file has as its first bytes, if there is one.
std::optional<deck::DataFormat> recognized_format(std::span<const std::byte> head);

/// Throws Error(files) if a file does not have the magic number of `format`, the deck's
/// data.format, and looks like a token file of another format; the message tells what to set or do
/// instead. Read as plain bytes, such a file would train a model of its encoding without any error.
/// Only magic numbers are examined. Tokens of Megatron-LM have none: they are recognized by the
/// index file of the same stem in the same folder.
void refuse_other_format(const std::string& path, std::span<const std::byte> head,
                         deck::DataFormat format);

}  // namespace kzero::data
