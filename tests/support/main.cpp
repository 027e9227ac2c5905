// Runs a program's tests on every rank. A test that fails on any rank fails the program.
#include <gtest/gtest.h>

#include "runtime/session.hpp"
#include "runtime/signals.hpp"

namespace {

int run_tests() {
  const kzero::runtime::Session session({.threads = 0});
  return session.any_rank(RUN_ALL_TESTS() != 0) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  kzero::runtime::take_signals();
  testing::InitGoogleTest(&argc, argv);
  return kzero::runtime::ended(run_tests());
}
