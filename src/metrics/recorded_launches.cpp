#include "metrics/recorded_launches.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace kzero::metrics {

namespace {

using Record = nlohmann::json;

/// The longest line that is kept, in bytes. A start record has the host name of every rank; a
/// longer line is not a record.
constexpr std::size_t longest_line = std::size_t{64} << 20;

/// Reads the next line, without its end; false at the end of the file.
bool next_line(std::streambuf& file, std::string& line) {
  using Traits = std::char_traits<char>;
  line.clear();
  for (auto c = file.sbumpc(); c != Traits::eof(); c = file.sbumpc()) {
    if (c == '\n') return true;
    if (line.size() < longest_line) line.push_back(Traits::to_char_type(c));
  }
  return !line.empty();
}

/// Returns whether the line is the record of a step before `from`, judged by its first bytes: most
/// lines are, and parsing is slow.
bool is_earlier_step(std::string_view line, Index from) {
  constexpr std::string_view begin = R"({"event":"step","step":)";
  if (!line.starts_with(begin)) return false;
  line.remove_prefix(begin.size());
  Index step = 0;
  const auto [rest, bad] = std::from_chars(line.data(), line.data() + line.size(), step);
  return bad == std::errc{} && step < from;
}

std::string text_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Index step_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number_integer() ? found->get<Index>() : -1;
}

/// A number, NaN for null; empty if the record does not have it.
std::optional<double> number_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end()) return std::nullopt;
  if (found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

RecordedLaunch launch_of(const Record& record) {
  RecordedLaunch launch;
  launch.bits = text_in(record, "bits");
  launch.start = {step_in(record, "first_step"), text_in(record, "state")};
  const auto hosts = record.find("hosts");
  if (hosts == record.end()) return launch;
  for (const Record& host : *hosts) {
    if (host.is_string()) launch.hosts.push_back(host.get<std::string>());
  }
  return launch;
}

/// Adds a record other than a start to the launch that made it.
void add(const Record& record, Index from, RecordedLaunch& launch) {
  const std::string event = text_in(record, "event");
  const Index step = step_in(record, "step");
  if (event == "checkpoint") launch.saved.push_back({step, text_in(record, "state")});
  if (event != "step" || step < from) return;
  const auto loss = number_in(record, "loss"), norm = number_in(record, "grad_norm");
  if (loss && norm) launch.steps.push_back({step, *loss, *norm, step_in(record, "tokens")});
}

}  // namespace

void read_launches(const std::string& path, Index from,
                   const std::function<void(RecordedLaunch&&)>& use) {
  if (!std::filesystem::is_regular_file(path)) return;  // devices may have no end
  std::filebuf file;
  KZERO_REQUIRE(file.open(path, std::ios::in | std::ios::binary), ExitCode::files,
                "run.metrics: {} cannot be opened for reading", path);
  std::optional<RecordedLaunch> launch;
  for (std::string line; next_line(file, line);) {
    if (is_earlier_step(line, from)) continue;
    const Record record = parse_json(line);
    if (!record.is_object()) continue;
    if (text_in(record, "event") == "start") {
      if (launch) use(std::move(*launch));
      launch = launch_of(record);
    } else if (launch) {
      add(record, from, *launch);
    }
  }
  if (launch) use(std::move(*launch));
}

}  // namespace kzero::metrics
