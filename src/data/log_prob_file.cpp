#include "data/log_prob_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"

namespace kzero::data {

namespace {

constexpr std::string_view log_prob_magic = "KZEROLNP";
constexpr std::uint32_t log_prob_version = 1;
constexpr std::size_t log_prob_header = 256;  // bytes

struct LogProbHead {
  char magic[log_prob_magic.size()];
  std::uint32_t version, zero;
  std::uint64_t documents, model, content, checksum;
};
static_assert(sizeof(LogProbHead) == 48, "there is no padding in the file");

}  // namespace

std::vector<std::byte> log_prob_bytes(const LogProbs& log_probs) {
  const auto values = std::as_bytes(std::span(log_probs.values));
  LogProbHead head{{},
                   log_prob_version,
                   0,
                   log_probs.values.size(),
                   log_probs.model,
                   log_probs.documents,
                   checksum(values)};
  std::ranges::copy(log_prob_magic, head.magic);
  std::vector<std::byte> bytes(log_prob_header + values.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::ranges::copy(values, bytes.begin() + log_prob_header);
  return bytes;
}

LogProbs read_log_probs(const std::string& path) {
  const std::string bytes = load_file(path);
  KZERO_REQUIRE(bytes.starts_with(log_prob_magic) && bytes.size() >= log_prob_header,
                ExitCode::files,
                "{}: is not a file of log-probabilities, which `kzero evaluate MODEL FILE "
                "--log-probs OUT` writes",
                printable(path));
  LogProbHead head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  KZERO_REQUIRE(head.version == log_prob_version && head.zero == 0, ExitCode::files,
                "{}: is version {} of a file of log-probabilities, but only version {} is read",
                printable(path), head.version, log_prob_version);
  const std::size_t there = bytes.size() - log_prob_header;
  KZERO_REQUIRE(there % sizeof(double) == 0 && there / sizeof(double) == head.documents,
                ExitCode::files,
                "{}: its header counts {} documents, which do not fit the {} bytes of the file; it "
                "is truncated or damaged: write it again",
                printable(path), head.documents, bytes.size());
  LogProbs found{head.model, head.content, std::vector<double>(head.documents)};
  std::memcpy(found.values.data(), bytes.data() + log_prob_header, there);
  KZERO_REQUIRE(checksum(std::as_bytes(std::span(found.values))) == head.checksum &&
                    std::ranges::all_of(found.values, [](double v) { return std::isfinite(v); }),
                ExitCode::files, "{}: its values are damaged: write it again", printable(path));
  return found;
}

}  // namespace kzero::data
