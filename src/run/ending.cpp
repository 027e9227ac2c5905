#include "run/ending.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "storage/files.hpp"

namespace kzero::run {

namespace {

std::string cause(const metrics::EndRecord& record, const deck::Run& run) {
  if (record.reason == "signal") return "by " + record.signal;
  if (record.reason == "wall_limit") return "ahead of the time limit";
  if (record.reason == "stop_file")
    return fmt::format("by run.stop_file ({}; remove it first)", run.stop_file);
  return fmt::format("by run.max_steps = {}", run.max_steps);
}

}  // namespace

std::filesystem::path end_file(const deck::Config& config) {
  if (!config.run.end_file.empty()) return config.run.end_file;
  if (config.checkpoint.folder.empty()) return {};
  return std::filesystem::path(config.checkpoint.folder) / "end.json";
}

std::string stop_text(const metrics::EndRecord& record, const deck::Config& config) {
  const bool saved = !config.checkpoint.folder.empty();
  return fmt::format("stopped {} after step {} of {} {}", cause(record, config.run), record.steps,
                     config.train.steps,
                     saved ? "with a checkpoint; the same command resumes"
                           : "without a checkpoint, as checkpoint.folder is empty");
}

void write_end_file(const metrics::EndRecord& record, const deck::Config& config) {
  const auto path = end_file(config);
  if (path.empty()) return;
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    KZERO_REQUIRE(!error, ExitCode::files, "{}: its folder cannot be created ({})", path.string(),
                  error.message());
  }
  storage::write_durably(
      path, fmt::format("{{\"reason\":\"{}\",\"signal\":\"{}\",\"exit_code\":{},\"steps\":{}}}\n",
                        record.reason, record.signal, record.exit_code, record.steps));
}

void remove_end_file(const deck::Config& config) {
  const auto path = end_file(config);
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::remove(path, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed before the run ({})", path.string(),
                error.message());
}

namespace {

/// Returns the ending that the ranks agreed on; nullopt if the run continues.
std::optional<Ending> ending_of(Index agreed) {
  const auto wish = runtime::decode_stop(agreed);
  if (!wish) return std::nullopt;
  return Ending{std::string(name_of(wish->reason)), wish->signal};
}

}  // namespace

StopAgreement::StopAgreement(const deck::Run& run, const grid::Group& world,
                             const runtime::StopSignal& stop, NodeTimes& times)
    : run_(run), world_(world), stop_(stop), times_(times) {}

std::optional<Ending> StopAgreement::after_step(Index steps_of_this_job) {
  pace_.restart();
  if (auto found = ending_of(times_.agree(runtime::encode(stop_.wish())))) return found;
  if (run_.max_steps > 0 && steps_of_this_job >= run_.max_steps) return Ending{"max_steps"};
  return std::nullopt;
}

std::optional<Ending> StopAgreement::within_evaluation() {
  return ending_of(pace_.unpack(world_.max(pace_.pack(runtime::encode(stop_.wish())))));
}

}  // namespace kzero::run
