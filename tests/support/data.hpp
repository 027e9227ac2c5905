#pragma once

#include <string>

namespace kzero::tests {

/// The path of a file of the reference runs.
inline std::string reference_file(const std::string& name) {
  return std::string(KZERO_TEST_DATA) + "/reference/" + name;
}

}  // namespace kzero::tests
