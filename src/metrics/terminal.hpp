// Finds the terminal at which a user watches a run, also through a launcher: the ranks of an
// mpiexec write into pipes, and mpiexec copies what comes out of them to its own standard output.
// Reads /proc only; does not know what is shown.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

class Terminal {
 public:
  /// The terminal that shows what is written to `descriptor` (of this process): its own file, or,
  /// where that is a pipe whose reader is a launcher (mpiexec, mpirun or hydra's proxy) above this
  /// process on this node, that launcher's standard output, found in the same way. Nothing where
  /// the way ends elsewhere (a file, another program, another node), where the launcher marks or
  /// redirects what it copies, and where TERM is "dumb", as such a terminal cannot erase.
  static std::optional<Terminal> behind(int descriptor);

  /// The width at this moment; 0 where the terminal does not tell, or is gone.
  Index columns() const;

 private:
  Terminal(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;    // of this process; -1: the terminal is another's
  std::string path_;  // opened for each question, so that no rank keeps a user's terminal open
};

}  // namespace kzero::metrics
