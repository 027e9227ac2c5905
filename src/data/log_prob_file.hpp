// Files of log-probabilities: for each document of some files, the sum of ln p of its targets under
// a model (docs/data.md has the format). They are the reference of preference losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

struct LogProbs {
  std::uint64_t model = 0;      // engine::weights_hash
  std::uint64_t documents = 0;  // DocumentFiles::content_digest
  std::vector<double> values{};
};

/// Returns the bytes of a file.
std::vector<std::byte> log_prob_bytes(const LogProbs& log_probs);

/// Reads a file. Throws Error(files), naming the path, if it is of another format, truncated,
/// damaged, or has a value that is not finite.
LogProbs read_log_probs(const std::string& path);

}  // namespace kzero::data
