#include "tensor/onednn_sets.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor/gemm.hpp"

namespace kzero::tensor {

namespace {

TEST(OneDnnSets, AreNamedByFamily) {
  EXPECT_EQ(name_of_set(0x7, Family::x86_64), "AVX2");
  EXPECT_EQ(name_of_set(0x27, Family::x86_64), "AVX-512");
  EXPECT_EQ(name_of_set(0xf, Family::x86_64), "AVX2 and more (0xf)");
  EXPECT_EQ(name_of_set(0x1, Family::x86_64), "instruction set 0x1");
  EXPECT_EQ(name_of_set(0x1, Family::aarch64), "NEON");
  EXPECT_EQ(name_of_set(0x7, Family::aarch64), "SVE of 256 bits");
  EXPECT_EQ(name_of_set(0x1f, Family::aarch64), "SVE of 512 bits");
  EXPECT_EQ(name_of_set(0x27, Family::aarch64), "SVE of 512 bits");
  EXPECT_EQ(name_of_set(0x27, Family::other), "instruction set 0x27");
}

// kzero would otherwise call oneDNN in a way that keeps bits only where AVX-512 multiplies.
TEST(OneDnnSets, HaveAvx512OnX86Alone) {
  EXPECT_TRUE(has_avx512(0x27, Family::x86_64));
  EXPECT_FALSE(has_avx512_bf16(0x27, Family::x86_64));
  EXPECT_FALSE(has_avx512(0x7, Family::x86_64));
  EXPECT_TRUE(has_avx512_bf16(0xef, Family::x86_64));
  EXPECT_FALSE(has_amx(0xef, Family::x86_64));
  EXPECT_TRUE(has_amx(0xfef, Family::x86_64));
  for (const Family family : {Family::aarch64, Family::other}) {
    EXPECT_FALSE(has_avx512(0x27, family));
    EXPECT_FALSE(has_avx512_bf16(0xffffffff, family));
    EXPECT_FALSE(has_amx(0xffffffff, family));
  }
}

TEST(OneDnnSets, AppearInTheRunsListOfWhatBitsDependOn) {
  const std::string line = make_gemm(GemmBackend::onednn)->arithmetic();
  EXPECT_NE(line.find(" for " + name_of_set(onednn_set())), std::string::npos) << line;
  const std::vector<std::string> own = this_family == Family::aarch64
                                           ? std::vector<std::string>{"NEON", "SVE"}
                                           : std::vector<std::string>{"AVX", "AMX", "set 0x"};
  bool found = false;
  for (const std::string& name : own) found |= line.find(name) != std::string::npos;
  EXPECT_TRUE(found) << line;
}

}  // namespace

}  // namespace kzero::tensor
