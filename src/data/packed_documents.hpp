// Samples of documents that are packed into sequences: a pure function of (seed, lengths, global
// sample number), the same on any grid. An epoch packs each document once. Samples run through the
// epochs one after another, which may have different numbers of sequences. It is independent of
// MPI.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.hpp"
#include "data/document_files.hpp"
#include "data/packing.hpp"
#include "data/teacher_file.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// Consecutive documents of a source, repeated without end. A document of n tokens has n positions
/// of a row; the last has no target. Positions at the end of a row that are left are documents of
/// one token, 0, without a target. Keeps the rows of two epochs: 4 bytes a document and 8 a row,
/// each. The first use of an epoch packs it, and those before it that are not yet known. It takes
/// no lock: one thread uses an object at a time.
class PackedDocuments : public EpochSource {
 public:
  /// Uses documents [first, first + count) of `files`, count > 0, of at most `sequence` tokens
  /// each. The documents of a pair stay next to each other, the chosen one first.
  PackedDocuments(std::shared_ptr<const DocumentFiles> files, Index sequence, Index first,
                  Index count, deck::DataOrder order, std::uint64_t seed,
                  std::shared_ptr<const TeacherFile> teacher = {});

  Index windows() const override { return first_row_[1]; }
  Index sequence() const override { return sequence_; }
  std::uint64_t digest() const override;
  void batch(Index first_sample, Index count, Token* inputs, Token* targets) const override;
  bool has_documents() const override { return true; }
  void documents(Index first_sample, Index count, const Token* inputs, std::int32_t* begin,
                 std::int32_t* end) const override;
  std::optional<Index> targets(Index first_sample, Index count) const override;
  bool has_weights() const override { return files_->have_weights(); }
  void weights(Index first_sample, Index count, float* weights) const override;
  std::optional<Index> pairs(Index first_sample, Index count, Pair* pairs) const override;

  bool has_teacher() const override { return teacher_ != nullptr; }
  void teacher(Index first_sample, Index count, Index top, Token* tokens,
               float* ln_p) const override;

  std::span<const std::uint32_t> documents_of(Index sample) const override;
  Fullness fullness() const override;

 private:
  struct Epoch {
    Index number = -1;
    Packing packing{};
    std::vector<std::uint32_t> targets{};  // of each row
  };
  struct Place {
    const Epoch& epoch;
    Index row;
  };

  Place place(Index sample) const;
  const Epoch& epoch(Index number) const;
  void pack(Index number, Epoch& epoch) const;

  std::shared_ptr<const DocumentFiles> files_;
  Index sequence_, first_, count_;
  deck::DataOrder order_;
  std::uint64_t seed_;
  std::shared_ptr<const TeacherFile> teacher_;  // null: none
  mutable std::array<Epoch, 2> kept_;           // a step may begin in one epoch and end in the next
  mutable std::vector<Index> first_row_{0};     // of each epoch known so far, then of the next
};

}  // namespace kzero::data
