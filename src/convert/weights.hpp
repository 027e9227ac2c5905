// Reads the weights of a model under Hugging Face names. Names and shapes are those of the
// parameter table (linear weights are [in, out] in GPT-2 and [out, in] in the Llama family). Files
// may have the names with or without the family's prefix (names.hpp).
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "checkpoint/format/manifest.hpp"
#include "convert/names.hpp"
#include "convert/safetensors.hpp"
#include "param/spec.hpp"

namespace kzero::convert {

/// The weights of one model on disk, read range by range: each rank reads its local elements. The
/// constructor reads only config.json and headers (and an lm_head.weight that should repeat tied
/// embeddings, and constants that are not trained), so it also tells whether the weights are
/// usable.
class Weights {
 public:
  /// Opens `path`: a safetensors file, the index of a set of files, or a folder with either. Throws
  /// Error(files) if config.json in the same folder describes another function than kzero computes
  /// with `model`; otherwise with all tensors that are missing, unknown, of the wrong shape or not
  /// floating-point. The tables of a vocabulary may have fewer rows than model.vocab, but as many
  /// as config.json tells if there is one. Constants, such as attention masks, are skipped, and so
  /// are an lm_head.weight that only repeats tied embeddings, and the parts for images of a larger
  /// model. Not collective.
  Weights(const std::filesystem::path& path, const deck::Model& model, const param::Table& table);

  /// Returns a message for the user. It lists what was not compared because config.json is missing,
  /// what was left out, and new rows. Empty if there is nothing to tell.
  const std::string& note() const { return note_; }

  /// The number of rows that the tables of the vocabulary lack.
  Index new_rows() const { return new_rows_; }

  /// Reads elements of a parameter of the table as float32. New rows of the tables of the
  /// vocabulary are the mean of the others. One thread at a time may call it. Throws Error(files)
  /// for values that are not finite, and if a file has changed. Not collective.
  void load_range(const std::string& parameter, checkpoint::Range range,
                  std::span<float> values) const;

 private:
  struct Stored {
    const SafetensorsFile* file = nullptr;
    const Tensor* tensor = nullptr;
  };

  std::vector<std::string> offer(const std::map<std::string, std::filesystem::path>& placed);
  std::vector<std::string> match(const param::Table& table);
  bool lacks_rows(const checkpoint::Parameter& parameter, const Tensor& tensor) const;
  static bool same_values(const Stored& a, const Stored& b);

  const TensorNames* names_;
  std::string note_;
  Index described_rows_ = 0;  // vocab_size of config.json; 0: there is none
  Index new_rows_ = 0;
  Index other_parts_ = 0;  // tensors of other parts of a larger model
  std::deque<SafetensorsFile> files_;
  std::map<std::string, Stored> offered_;                    // by name without prefix
  mutable std::map<std::string, std::vector<float>> means_;  // rows of new tokens, by that name
};

}  // namespace kzero::convert
