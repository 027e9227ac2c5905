#include "runtime/build_facts.hpp"

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <type_traits>

#include "base/processor.hpp"
#include "base/version.hpp"

namespace kzero::runtime {

namespace {

TEST(BuildFacts, NameTheBuild) {
  const auto facts = build_facts();
  ASSERT_GE(facts.size(), 6U);
  EXPECT_EQ(facts.front().second, version());
  for (const auto& [name, value] : facts) EXPECT_FALSE(name.empty() || value.empty()) << name;
}

TEST(KernelArithmetic, NamesTheWayOfBf16OnHosts) {
  const bool on_host =
      std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>;
  const std::string arithmetic = kernel_arithmetic();
  EXPECT_EQ(arithmetic.ends_with(" and AMX"), on_host && amx_available());
  EXPECT_EQ(arithmetic.ends_with(" with bf16 (products widened)"),
            on_host && pairs_are_slow() && !amx_available() &&
                arithmetic.find("with bf16") != std::string::npos);
}

}  // namespace

}  // namespace kzero::runtime
