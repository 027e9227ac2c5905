#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "runtime/energy.hpp"

namespace kzero::runtime {

namespace {

namespace fs = std::filesystem;

/// Returns the text of a file of sysfs. Throws Error(files).
std::string attribute_text(const fs::path& path) {
  const Descriptor file(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  std::array<char, 256> text{};
  const auto count = file.number() < 0 ? -1 : uninterrupted([&] {
    return ::read(file.number(), text.data(), text.size());
  });
  KZERO_REQUIRE(count >= 0, ExitCode::files, "{}: {}", path.string(), std::strerror(errno));
  return {text.data(), static_cast<std::size_t>(count)};
}

/// Returns the number that a file of sysfs begins with. Throws Error(files).
std::uint64_t attribute_number(const fs::path& path) {
  const std::string text = attribute_text(path);
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  KZERO_REQUIRE(read.ec == std::errc(), ExitCode::files, "{}: is not a number", path.string());
  return number;
}

fs::path cray_energy(const fs::path& system) { return system / "cray/pm_counters/energy"; }

/// "energy" of Cray's pm_counters: joules of all that the node has, "66836 J 1439236447654321 us".
class CrayCounter final : public EnergyCounter {
 public:
  explicit CrayCounter(fs::path path) : path_(std::move(path)), begin_(attribute_number(path_)) {}

  double joules() override {
    try {
      if (!failed_) return static_cast<double>(attribute_number(path_) - begin_);
    } catch (const Error&) {
      failed_ = true;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  fs::path path_;
  std::uint64_t begin_;
  bool failed_ = false;
};

/// A counter of RAPL in microjoules. It begins at 0 again after `range`.
struct RaplDomain {
  fs::path path{};  // of energy_uj
  std::uint64_t range = 0;
  std::uint64_t last = 0;

  explicit RaplDomain(const fs::path& folder)
      : path(folder / "energy_uj"),
        range(attribute_number(folder / "max_energy_range_uj")),
        last(attribute_number(path)) {}

  /// Returns the microjoules since the last call.
  std::uint64_t take() {
    const std::uint64_t now = attribute_number(path);
    const std::uint64_t since = now >= last ? now - last : range - last + now;
    last = now;
    return since;
  }
};

class RaplCounter final : public EnergyCounter {
 public:
  RaplCounter(std::vector<RaplDomain> domains, std::chrono::milliseconds longest_gap)
      : domains_(std::move(domains)),
        thread_([this, longest_gap](const std::stop_token& stop) { watch(stop, longest_gap); }) {}

  double joules() override {
    const std::lock_guard lock(mutex_);
    read();
    return joules_;
  }

 private:
  void watch(const std::stop_token& stop, std::chrono::milliseconds longest_gap) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      changed_.wait_for(lock, stop, longest_gap, [] { return false; });
      read();
    }
  }

  void read() {
    try {
      for (RaplDomain& domain : domains_) joules_ += 1e-6 * static_cast<double>(domain.take());
    } catch (const Error&) {
      joules_ = std::numeric_limits<double>::quiet_NaN();
    }
  }

  std::vector<RaplDomain> domains_;
  double joules_ = 0;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;  // the last member: it uses the others
};

/// Returns the domains of packages and of memory below powercap's folder. The same packages may be
/// there again as "intel-rapl-mmio", and a platform's "psys" includes them.
std::vector<RaplDomain> rapl_domains(const fs::path& powercap) {
  static const std::regex zone("intel-rapl:[0-9]+(:[0-9]+)?");
  std::vector<RaplDomain> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(powercap, missing)) {
    if (!std::regex_match(entry.path().filename().string(), zone)) continue;
    const std::string name = attribute_text(entry.path() / "name");
    if (name.starts_with("package-") || name.starts_with("dram")) found.emplace_back(entry.path());
  }
  return found;
}

}  // namespace

bool counts_devices(const fs::path& system) {
  std::error_code ignored;
  return fs::exists(cray_energy(system), ignored);
}

FoundCounter node_energy(const fs::path& system, std::chrono::milliseconds longest_gap) {
  const fs::path powercap = system / "class/powercap";
  try {
    if (counts_devices(system))
      return {std::make_unique<CrayCounter>(cray_energy(system)), "pm_counters"};
    auto domains = rapl_domains(powercap);
    if (!domains.empty())
      return {std::make_unique<RaplCounter>(std::move(domains), longest_gap), "RAPL"};
  } catch (const Error& error) {
    return {.problem = error.what()};
  } catch (const fs::filesystem_error& error) {
    return {.problem = error.what()};
  }
  return {.problem = fmt::format("no counters in {}", powercap.string())};
}

}  // namespace kzero::runtime
