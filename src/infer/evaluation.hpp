// The results of an evaluation, as a table for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "infer/scores.hpp"

namespace kzero::infer {

/// The scores of one file: exactly one of the two.
struct FileScore {
  std::string file{};
  std::string format{};  // of a text
  Index sequence = 0;    // tokens of a row
  double seconds = 0;    // without loading
  std::optional<TextScore> text{};
  std::optional<ChoiceScore> choice{};
};

/// The evaluated model, and how it is computed.
struct EvaluatedModel {
  std::string path;
  Index parameters = 0;
  Dtype precision{};
  Index data_ranks = 1, tensor_ranks = 1;
  Index sequence_ranks = 1;  // data ranks that share each sequence
  Index batch = 1;
  memory::Bytes memory{};       // planned, of the first rank
  std::string no_byte_lengths;  // why bits per byte are unknown; empty: they are known
};

std::string heading(const EvaluatedModel& model);
std::string table(const FileScore& score, const EvaluatedModel& model);

/// One object, with every score at full precision.
std::string json(const EvaluatedModel& model, const std::vector<FileScore>& scores);

}  // namespace kzero::infer
