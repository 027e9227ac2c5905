#include "run/energy.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/input_file.hpp"
#include "runtime/execution.hpp"
#include "runtime/host_name.hpp"

namespace kzero::run {

namespace {

/// What a rank reads. The root decides, and sends each rank's duties as a digit.
struct Duties {
  bool node = false, device = false;

  char digit() const { return static_cast<char>('0' + (node ? 1 : 0) + (device ? 2 : 0)); }
  static Duties of(char digit) { return {((digit - '0') & 1) != 0, ((digit - '0') & 2) != 0}; }
};

/// The digits of all ranks: the first rank with a node or a device reads it.
std::string elect_readers(const std::vector<std::string>& nodes,
                          const std::vector<std::string>& devices) {
  std::string digits;
  std::set<std::string> seen;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    const bool has_device = !devices[rank].empty();
    digits += Duties{seen.insert(nodes[rank]).second,
                     has_device && seen.insert(nodes[rank] + ' ' + devices[rank]).second}
                  .digit();
  }
  return digits;
}

/// Counters of one kind over all ranks.
struct Survey {
  Index all = 0;
  std::vector<std::string> problems{}, hosts{};  // of those that are missing

  Index measured() const { return all - static_cast<Index>(problems.size()); }
};

/// Reports on the ranks' counters of one kind. Each text begins with the host and a line end, and
/// continues with the source, a line end and the problem; it is empty without the duty. Adds the
/// sources to a set.
Survey survey_of(const std::vector<std::string>& texts, std::set<std::string>& sources) {
  Survey found;
  for (const std::string& text : texts) {
    if (text.empty()) continue;
    ++found.all;
    const auto first = text.find('\n'), second = text.find('\n', first + 1);
    const std::string source = text.substr(first + 1, second - first - 1);
    if (!source.empty()) {
      sources.insert(source);
      continue;
    }
    found.hosts.push_back(text.substr(0, first));
    found.problems.push_back(text.substr(second + 1));
  }
  return found;
}

/// Describes counters that are not there while others are; empty if none is missing.
std::string missing_text(const Survey& survey, const std::string& what, const std::string& unit) {
  if (survey.problems.empty()) return {};
  const std::string& problem = survey.problems.front();
  if (survey.measured() == 0) return fmt::format("without {}: {}", what, problem);
  return fmt::format("without {} of {} {}, first {}: {}", survey.problems.size(), survey.all, unit,
                     survey.hosts.front(), problem);
}

std::string survey_text(bool has_duty, const std::string& host,
                        const runtime::FoundCounter& counter) {
  return has_duty ? fmt::format("{}\n{}\n{}", host, counter.source, counter.problem) : "";
}

}  // namespace

EnergyPlace this_energy_place() {
  EnergyPlace place;
  place.host = runtime::host_name();
  // Containers on one node have host names of their own, but the same kernel.
  place.node = first_bytes("/proc/sys/kernel/random/boot_id", 64).value_or(place.host);
  const std::string device = runtime::device_name();  // "device 0000:18:00.0"
  place.device = device.substr(device.find(' ') + 1);
  return place;
}

EnergyMeter::EnergyMeter(const grid::Group& world, const EnergyPlace& place) : world_(world) {
  const bool needs_device = !place.device.empty() && !runtime::counts_devices(place.system);
  const auto nodes = world_.gather(place.node);
  const auto devices = world_.gather(needs_device ? place.device : "");
  const std::string digits = world_.broadcast(elect_readers(nodes, devices));
  const Duties mine = Duties::of(digits[static_cast<std::size_t>(world_.rank())]);
  if (mine.node) node_ = runtime::node_energy(place.system);
  if (mine.device) device_ = runtime::device_energy(place.device, place.nvml);
  is_on_ = world_.max(node_.counter || device_.counter ? 1 : 0) > 0;
  const auto of_nodes = world_.gather(survey_text(mine.node, place.host, node_));
  const auto of_devices = world_.gather(survey_text(mine.device, place.host, device_));
  if (world_.is_root()) note_missing(of_nodes, of_devices);
}

void EnergyMeter::note_missing(const std::vector<std::string>& of_nodes,
                               const std::vector<std::string>& of_devices) {
  std::set<std::string> sources;
  const Survey node = survey_of(of_nodes, sources), device = survey_of(of_devices, sources);
  record_.sources.assign(sources.begin(), sources.end());
  record_.nodes = node.all;
  record_.measured_nodes = node.measured();
  record_.devices = device.all;
  record_.measured_devices = device.measured();
  if (!is_on_) {
    note_ = "energy      none: " + (device.all > 0 ? device : node).problems.front();
    return;
  }
  for (const std::string& text :
       {missing_text(node, "processors", "nodes"), missing_text(device, "devices", "devices")})
    if (!text.empty()) note_ += (note_.empty() ? "energy      " : "; ") + text;
}

double EnergyMeter::take() {
  double all = 0;
  for (const auto* one : {&node_, &device_}) all += one->counter ? one->counter->joules() : 0;
  return all - std::exchange(taken_, all);
}

std::optional<metrics::EnergyRecord> EnergyMeter::total(double tokens, double seconds) {
  take();
  const double joules = world_.sum(taken_);
  if (!is_on_) return std::nullopt;
  metrics::EnergyRecord record = record_;
  record.joules = joules;
  if (tokens > 0) record.joules_per_token = joules / tokens;
  record.watts = joules / seconds;
  return record;
}

}  // namespace kzero::run
