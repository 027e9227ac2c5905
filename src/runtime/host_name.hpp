// The name of this process's node.
#pragma once

#include <unistd.h>

#include <string>

namespace kzero::runtime {

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace kzero::runtime
