#include "base/processor.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace kzero {

namespace {

TEST(Processor, OneDnnsLimitHoldsForAmx) {
  for (const char* leaves : {"", "ALL", "default", "AVX512_CORE_AMX", "avx10_1_512_amx_fp16"})
    EXPECT_TRUE(isa_limit_leaves_amx(leaves)) << leaves;
  for (const char* excludes : {"SSE41", "AVX2", "avx512_core_bf16", "AVX512_CORE_FP16"})
    EXPECT_FALSE(isa_limit_leaves_amx(excludes)) << excludes;
}

/// Returns the words of Linux' lines `name` about processors.
std::set<std::string> processor_words(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) found.insert(word);
  }
  return found;
}

// Linux lists the processor features that it supports.
TEST(Processor, AmxIsWhatLinuxSupports) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") || std::getenv("DNNL_MAX_CPU_ISA"))
    GTEST_SKIP() << "oneDNN is limited";
  const auto flags = processor_words("flags");
  EXPECT_EQ(amx_available(), flags.contains("amx_tile") && flags.contains("amx_bf16"));
}

TEST(Processor, PairsAreSlowOnIntelsWithFp16) {
  EXPECT_EQ(pairs_are_slow(), processor_words("vendor_id").contains("GenuineIntel") &&
                                  processor_words("flags").contains("avx512_fp16"));
}

}  // namespace

}  // namespace kzero
