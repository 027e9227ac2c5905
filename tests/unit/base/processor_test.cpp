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

// Linux lists the processor features that it supports.
TEST(Processor, AmxIsWhatLinuxSupports) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") || std::getenv("DNNL_MAX_CPU_ISA"))
    GTEST_SKIP() << "oneDNN is limited";
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  EXPECT_EQ(amx_available(), flags.contains("amx_tile") && flags.contains("amx_bf16"));
}

}  // namespace

}  // namespace kzero
