// Limits how long OpenMP's idle threads spin in `kzero generate` and `kzero compare`. A token takes
// about a hundred short parallel regions. GCC's libgomp spins up to several milliseconds at the end
// of each, which keeps the thread that is waited for off its core if the node is busy: generation
// was 10 to 100 times slower (docs/decisions.md). Training keeps libgomp's own limit, which suits
// long regions.
#include <elf.h>
#include <linux/limits.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace kzero::app {

namespace {

/// Turns of the waiting loop before a thread sleeps: about 0.1 ms.
constexpr const char* limit = "GOMP_SPINCOUNT=3000";

bool generates(std::string_view command) { return command == "generate" || command == "compare"; }

/// Returns whether the user has said how threads wait.
bool is_decided(char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with("GOMP_SPINCOUNT=") || entry.starts_with("OMP_WAIT_POLICY=")) return true;
  }
  return false;
}

/// Starts the program again with the limit. libgomp reads its variables when it is loaded, which
/// is after this function and before main. Returns if the program cannot be started again: the
/// limit only saves time. Calls the kernel directly, because sanitizers may not have started yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void limit_spinning(
    int argc, char** argv, char** environment) {
  if (argc < 2 || !generates(argv[1]) || is_decided(environment)) return;
  if (getauxval(AT_BASE) == 0) return;  // started as `ld.so kzero`: the program's path is unknown

  static char path[PATH_MAX];
  if (syscall(SYS_readlinkat, -1, "/proc/self/exe", path, sizeof path - 1) <= 0) return;
  constexpr std::size_t max_variables = 16384;
  static const char* extended[max_variables + 2];
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == max_variables) return;
    extended[count] = environment[count];
  }
  extended[count] = limit;
  syscall(SYS_execve, path, argv, extended);
}

/// The dynamic loader calls the functions in this section before the constructors of libraries.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_libraries)(int, char**, char**) = limit_spinning;

}  // namespace

}  // namespace kzero::app
