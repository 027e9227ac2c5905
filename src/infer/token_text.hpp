// Converts a model's tokens to text and back, with a tokenizer.json or as bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "infer/source.hpp"

namespace kzero::infer {

class TokenText {
 public:
  virtual ~TokenText() = default;

  /// The tokens of a text, with those that the tokenizer adds around it unless they are left out.
  /// Throws Error(files) for text that cannot be encoded.
  virtual std::vector<Token> encode(std::string_view text) const = 0;
  /// The bytes of a token; none if the tokenizer does not have it.
  virtual std::string_view bytes(Token token) const = 0;
  /// One more than the largest token.
  virtual Index size() const = 0;
  /// Whether each token is a byte.
  virtual bool is_bytes() const = 0;
  /// Tokens that end a text. The usual one comes first.
  virtual const std::vector<Token>& end_tokens() const = 0;
};

/// The value of --tokenizer for tokens that are bytes.
inline constexpr std::string_view bytes_name = "bytes";

/// The tokenizer.json that open_token_text opens; empty if there is none, or if tokens are bytes.
/// Throws Error(files) as convert::find_tokenizer does. Not collective.
std::filesystem::path find_tokenizer(const Source& source, const std::string& given);

/// The chat_parts.json next to the tokenizer that open_token_text opens; it may be missing. Throws
/// Error(files) if there is no tokenizer.
std::filesystem::path chat_parts_file(const Source& source, const std::string& given);

/// Whether encode() adds the tokens of a tokenizer.json's post_processor, such as
/// <|begin_of_text|>.
enum class SpecialTokens { added, left_out };

/// Returns whether the source has a tokenizer of its own, in the folder Source::origin.
bool has_tokenizer(const Source& source);

/// Opens the tokens of `given`: a tokenizer.json, its folder, or "bytes". If `given` is empty, uses
/// the source's own tokenizer, otherwise a checkpoint's data.format = "bytes", or the
/// tokenizer.json in the folder of the checkpoint's data, or of the model that it began from. End
/// tokens are eos_token_id of generation_config.json or config.json, or eos_token of
/// tokenizer_config.json, in the tokenizer's folder. Throws Error(files) if there is no tokenizer
/// or it has more tokens than the model's vocabulary. Not collective.
std::unique_ptr<TokenText> open_token_text(const Source& source, const std::string& given,
                                           SpecialTokens special = SpecialTokens::added);

}  // namespace kzero::infer
