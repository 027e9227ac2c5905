#include "tokenizer/unicode.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kzero::tokenizer {
namespace {

TEST(Unicode, ComposesLongRunsOfMarks) {
  std::string marks, below, above;
  for (int i = 0; i < 100'000; ++i) {  // takes a minute in quadratic time
    marks += "\u0301\u0323";
    below += "\u0323";
    above += "\u0301";
  }
  EXPECT_EQ(composed("o" + marks + "e"), "\u1ecd" + below.substr(2) + above + "e");
  std::string signs(300'000, ' ');
  for (std::size_t i = 0; i < signs.size(); i += 3) signs.replace(i, 3, "\u0f73");
  EXPECT_EQ(composed(signs).substr(0, 6), "\u0f71\u0f71");
}

}  // namespace
}  // namespace kzero::tokenizer
