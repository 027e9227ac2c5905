#include "checkpoint/folder/owner.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <utility>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "runtime/host_name.hpp"

namespace kzero::checkpoint {

namespace {

constexpr std::string_view title = "kzero: the run that writes into this folder\n";
constexpr int start_field = 19;  // of /proc/PID/stat, counted from the process's state

using Field = std::pair<const char*, std::string Owner::*>;
constexpr std::array<Field, 10> fields{{{"host", &Owner::host},
                                        {"start", &Owner::start},
                                        {"machine", &Owner::machine},
                                        {"system", &Owner::system},
                                        {"user", &Owner::user},
                                        {"job", &Owner::job},
                                        {"restart", &Owner::restart},
                                        {"launch", &Owner::launch},
                                        {"since", &Owner::since},
                                        {"token", &Owner::token}}};

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// The number at the start of a text, else 0.
Index number(const std::string& text) {
  Index value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Returns "state rest..." of a process; empty if the process does not exist or is not visible.
std::string stat_of(Index pid) {
  std::ifstream stream(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stream, line);
  const auto name_end = line.rfind(')');  // a name may contain anything
  return name_end == std::string::npos ? "" : line.substr(std::min(line.size(), name_end + 2));
}

std::string start_in(const std::string& stat) {
  std::istringstream words(stat);
  std::string word;
  for (int i = 0; i <= start_field; ++i) words >> word;
  return words ? word : "";
}

std::string this_machine() {
  std::string boot;
  std::ifstream stream("/proc/sys/kernel/random/boot_id");
  std::getline(stream, boot);
  std::error_code none;
  const auto processes = std::filesystem::read_symlink("/proc/self/ns/pid", none);
  return fmt::format("{} {}", boot, processes.string());
}

/// Returns a hash of the number of the installed system, which is confidential (machine-id(5)).
std::string this_system() {
  std::string number;
  std::ifstream stream("/etc/machine-id");
  std::getline(stream, number);
  constexpr SipKey purpose{0x6b7a65726f206c6f, 0x636b2073797374};  // "kzero lock syst" in ASCII
  return number.empty()
             ? ""
             : fmt::format("{:016x}", siphash(purpose, std::as_bytes(std::span(number))));
}

/// Returns whether the owner was a process of this system before it booted. Two machines can be
/// clones with one name, so a sign of life since the boot must be another machine's.
bool ended_with_the_system(const Owner& owner, const Owner& observer, std::time_t last_sign) {
  timespec now{};
  timespec up{};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0 || ::clock_gettime(CLOCK_BOOTTIME, &up) != 0)
    return false;
  const auto boot = [](const Owner& one) { return one.machine.substr(0, one.machine.find(' ')); };
  return !owner.system.empty() && owner.system == observer.system && owner.host == observer.host &&
         boot(owner) != boot(observer) && last_sign < now.tv_sec - up.tv_sec;
}

/// Returns whether a process lives. One that may not be inspected does; a zombie does not.
bool lives(const Owner& owner) {
  if (owner.pid > std::numeric_limits<pid_t>::max()) return false;  // no process has such a number
  if (::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return false;
  const std::string stat = stat_of(owner.pid);
  if (stat.empty()) return true;
  return stat.front() != 'Z' && stat.front() != 'X' && start_in(stat) == owner.start;
}

}  // namespace

Owner this_process() {
  Owner owner{.host = runtime::host_name(),
              .pid = ::getpid(),
              .start = start_in(stat_of(::getpid())),
              .machine = this_machine(),
              .system = this_system(),
              .user = variable("USER", fmt::format("{}", ::getuid())),
              .job = variable("KZERO_JOB", variable("SLURM_JOB_ID", "")),
              .restart = variable("SLURM_RESTART_COUNT", "0"),
              .launch = variable("KZERO_LAUNCH", "0"),
              .since = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
              .token = fmt::format("{:08x}", std::random_device()())};
  return owner;
}

std::string pack(const Owner& owner) {
  std::string text(title);
  text += fmt::format("pid {}\n", owner.pid);
  for (const auto& [name, field] : fields)
    text += fmt::format("{} {}\n", name, printable(owner.*field));
  return text;
}

Owner unpack_owner(const std::string& text) {
  Owner owner;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = line.substr(0, space);
    const std::string value = printable(line.substr(space + 1));
    if (name == "pid") std::from_chars(value.data(), value.data() + value.size(), owner.pid);
    for (const auto& [known, field] : fields) {
      if (name == known) owner.*field = value;
    }
  }
  return owner;
}

std::string describe(const Owner& owner) {
  if (owner.token.empty()) return "a run that has not said its name";
  return fmt::format("process {} on {}, user {}{}{}, since {}", owner.pid, owner.host, owner.user,
                     owner.job.empty() ? "" : ", job ", owner.job, owner.since);
}

Life life_of(const Owner& owner, const Owner& observer, std::time_t last_sign) {
  if (owner.token.empty() || owner.pid <= 0) return Life::unknown;
  if (!owner.job.empty() && owner.job == observer.job &&
      (owner.restart != observer.restart || number(owner.launch) < number(observer.launch)))
    return Life::gone;
  if (ended_with_the_system(owner, observer, last_sign)) return Life::gone;
  if (owner.machine != observer.machine) return Life::unknown;
  return lives(owner) ? Life::running : Life::gone;
}

}  // namespace kzero::checkpoint
