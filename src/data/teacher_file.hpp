// Files of a teacher's most probable tokens: for each position of some data, k tokens and ln p of
// each, most probable first (docs/distillation.md has the format). Positions are those of the data:
// token n of a stream, from which the teacher predicts token n + 1, or token n of all documents. A
// sample reads its positions wherever they come in the order of training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "data/open_files.hpp"

namespace kzero::data {

/// What the header of a file says.
struct TeacherFacts {
  Index top = 0;                // k
  Index positions = 0;          // of the data
  Index vocab = 0;              // of the teacher
  Index sequence = 0;           // tokens of a stream's sequences; 0: of documents, each alone
  std::uint64_t model = 0;      // engine::weights_hash
  std::uint64_t tokenizer = 0;  // infer::tokenizer_hash; 0: not known
  std::uint64_t content = 0;    // DataFiles::content_sum of all parts
};

/// Returns the bytes of a header, and those of positions [positions, top], which have
/// deck::teacher_position_bytes each.
std::vector<std::byte> teacher_header(const TeacherFacts& facts);
std::string teacher_positions(std::span<const Token> tokens, std::span<const float> ln_p,
                              Index top);

/// An open file. One thread uses an object at a time.
class TeacherFile {
 public:
  /// Throws Error(files) if the file is of another format, truncated or damaged.
  explicit TeacherFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const TeacherFacts& facts() const { return facts_; }

  /// Throws Error(files) unless the file has `top` tokens of each of `positions` positions, of a
  /// vocabulary of `vocab` tokens and sequences of `sequence` tokens (0: of documents).
  void require(Index top, Index positions, Index vocab, Index sequence) const;

  /// Reads positions [first, first + count): tokens and ln_p [count, top]. Allocates nothing.
  /// Throws Error(files) if one is damaged, or has a token or a probability that cannot be.
  void read(Index first, Index count, Token* tokens, float* ln_p) const;

  /// A digest of the header, which has those of model and data.
  std::uint64_t digest() const { return header_digest_; }

 private:
  void check_position(Index position, std::span<const std::byte> bytes, const Token* tokens,
                      const float* ln_p) const;

  DataFile file_;
  TeacherFacts facts_;
  std::uint64_t header_digest_ = 0;
  mutable std::vector<std::byte> buffer_;  // of whole positions
};

}  // namespace kzero::data
