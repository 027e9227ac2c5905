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

}  // namespace kzero::run
