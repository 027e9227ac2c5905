#include "infer/log_prob_output.hpp"

#include "data/log_prob_file.hpp"
#include "grid/agreement.hpp"

namespace kzero::infer {

LogProbOutput::LogProbOutput(const grid::Group& world, const std::string& path) : world_(world) {
  grid::collectively(world, [&] {
    if (world.is_root()) file_.emplace(path);
  });
}

void LogProbOutput::write(const Source& source, const data::DocumentFiles& documents,
                          std::vector<double> log_probs) {
  const std::uint64_t model = weights_hash(world_, source);
  const auto bytes =
      data::log_prob_bytes({model, documents.content_digest(), std::move(log_probs)});
  grid::collectively(world_, [&] {
    if (!file_) return;
    file_->append(bytes);
    file_->finish();
  });
}

}  // namespace kzero::infer
