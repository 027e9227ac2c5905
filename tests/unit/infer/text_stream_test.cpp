#include "infer/text_stream.hpp"

#include <gtest/gtest.h>

namespace kzero::infer {
namespace {

using Texts = std::vector<std::string>;

/// The texts returned by each addition and by the end.
Texts handed_out(const Texts& stops, const Texts& added) {
  TextStream stream(stops);
  Texts out;
  for (const std::string& bytes : added) out.push_back(stream.add(bytes));
  out.push_back(stream.finish());
  return out;
}

TEST(TextStream, HoldsBackWhatIsNoCompleteCharacter) {
  EXPECT_EQ(handed_out({}, {"a\xC3", "\xA9z"}), (Texts{"a", "\u00E9z", ""}));
  EXPECT_EQ(handed_out({}, {"\xF0", "\x9F", "\x98", "\x80!"}),
            (Texts{"", "", "", "\U0001F600!", ""}));
}

TEST(TextStream, ReplacesWhatIsNoCharacter) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(handed_out({}, {"a\xFFz"}), (Texts{"a" + bad + "z", ""}));
  EXPECT_EQ(handed_out({}, {"\xE2\x82", "x"}), (Texts{"", bad + "x", ""}));
  EXPECT_EQ(handed_out({}, {"\xE2\x82"}), (Texts{"", bad}));
  // A surrogate, an overlong form, and a number beyond U+10FFFF, as in Python's errors="replace".
  EXPECT_EQ(handed_out({}, {"\xED\xA0\x80"}), (Texts{bad + bad + bad, ""}));
  EXPECT_EQ(handed_out({}, {"\xC0\x80"}), (Texts{bad + bad, ""}));
  EXPECT_EQ(handed_out({}, {"\xE0\x80\x80"}), (Texts{bad + bad + bad, ""}));
  EXPECT_EQ(handed_out({}, {"\xF4\x90\x80\x80"}), (Texts{bad + bad + bad + bad, ""}));
}

TEST(TextStream, EndsBeforeAStopTextThatTokensShare) {
  EXPECT_EQ(handed_out({"END"}, {"one E", "N", "D two", "three"}), (Texts{"one ", "", "", "", ""}));
  EXPECT_EQ(handed_out({"END"}, {"E", "EN", "E"}), (Texts{"", "E", "EN", "E"}));
  EXPECT_EQ(handed_out({"\n\n", "b"}, {"a\n", "xb", "c"}), (Texts{"a", "\nx", "", ""}));
  TextStream stream({"x"});
  EXPECT_EQ(stream.add("yxz"), "y");
  EXPECT_TRUE(stream.has_stopped());
}

TEST(TextStream, TakesTheFirstOfSeveralStops) {
  EXPECT_EQ(handed_out({"later", "now"}, {"not now, later"}), (Texts{"not ", ""}));
}

TEST(TextStream, StopsWithinBytesOfACharacterThatTokensShare) {
  EXPECT_EQ(handed_out({"\u00E9"}, {"caf\xC3", "\xA9!"}), (Texts{"caf", "", ""}));
  EXPECT_EQ(handed_out({"\u00E9"}, {"caf\xC3", "\xA8!"}), (Texts{"caf", "\u00E8!", ""}));
}

}  // namespace
}  // namespace kzero::infer
