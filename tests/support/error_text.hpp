// The message of a call that must fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace kzero::tests {

/// Returns the text of the Error that f throws. Fails the test if f throws none or one with another
/// code.
template <class F>
std::string error_of(ExitCode code, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kzero::tests
