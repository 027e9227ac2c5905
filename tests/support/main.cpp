// Runs a program's tests on every rank. A test that fails on any rank fails the program.
#include <gtest/gtest.h>

#include "runtime/session.hpp"
#include "runtime/signals.hpp"

int main(int argc, char** argv) {
  kzero::runtime::take_signals();
  testing::InitGoogleTest(&argc, argv);
  const kzero::runtime::Session session({.threads = 0});
  return session.any_rank(RUN_ALL_TESTS() != 0) ? 1 : 0;
}
