// Finds the terminal at which a user watches a run, also through a launcher: the ranks of an
// mpiexec write into pipes, and mpiexec copies them to its own standard output. It reads only /proc
// and is independent of what is shown.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

class Terminal {
 public:
  /// The terminal that shows what is written to `descriptor` of this process. This is the
  /// descriptor's own file. If that is a pipe read by a launcher (mpiexec, mpirun or hydra's proxy)
  /// above this process on this node, it is that launcher's standard output, found in the same way.
  /// Empty if the chain ends elsewhere (a file, another program, another node), if the launcher
  /// marks or redirects the lines, and if TERM is "dumb", because such a terminal cannot erase.
  static std::optional<Terminal> behind(int descriptor);

  /// The current width; 0 if the terminal does not report it, or is gone.
  Index columns() const;

 private:
  Terminal(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;    // of this process; -1: the terminal is another process's
  std::string path_;  // opened for each query, so that no rank keeps a user's terminal open
};

}  // namespace kzero::metrics
