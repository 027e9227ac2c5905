#include "tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/error_text.hpp"

namespace kzero::tokenizer {
namespace {

using tests::contains;
using tests::error_of;
using Tokens = std::vector<Token>;

Tokenizer tokenizer(const std::string& split) {
  return Tokenizer(std::string(KZERO_TEST_DATA) + "/tokenizer/" + split);
}

TEST(Tokenizer, GivesTextBack) {
  const std::string text = "A rank's memory:\r\n\t12345 \u4e2d\u6587, e\u0301 and \U0001F600.\n";
  for (const char* split : {"gpt2", "llama3"}) {
    const Tokenizer one = tokenizer(split);
    EXPECT_EQ(one.decode(one.encode(text)), text) << split;
  }
}

TEST(Tokenizer, ComposesTextWhereTheFileSaysSo) {
  const Tokenizer one = tokenizer("qwen2");
  EXPECT_EQ(one.decode(one.encode("e\u0301 a\u0323\u0302")), "\u00e9 \u1ead");
}

TEST(Tokenizer, PutsAMarkBeforeTextAndTakesItAway) {
  const Tokenizer one = tokenizer("llama2");
  const Tokens tokens = one.encode("the");
  EXPECT_EQ(tokens, (Tokens{one.find("\u2581the").value()}));
  EXPECT_EQ(one.bytes(tokens.front()), " the");
  EXPECT_EQ(one.decode(tokens), "the");
  for (const std::string text : {"", " ", "  the  rank", "\u2581", "a<s> the</s>the"}) {
    const std::string back = text == "\u2581"            ? " "
                             : text == "a<s> the</s>the" ? "a<s>  the</s> the"
                                                         : text;
    EXPECT_EQ(one.decode(one.encode(text)), back);
  }
}

TEST(Tokenizer, FallsBackToTheBytesOfACharacter) {
  const Tokenizer one = tokenizer("llama2");
  const Tokens tokens = one.encode("a\n\U0001F600");
  ASSERT_EQ(tokens.size(), 6U);
  EXPECT_EQ(tokens[1], one.find("<0x0A>"));
  EXPECT_EQ(tokens[5], one.find("<0x80>"));
  EXPECT_EQ(one.bytes(tokens[5]), "\x80");
  EXPECT_EQ(one.decode(tokens), "a\n\U0001F600");
}

TEST(Tokenizer, MergesToFewerTokensThanBytes) {
  const Tokenizer one = tokenizer("gpt2");
  const std::string text = "the memory of the ranks";
  const Tokens tokens = one.encode(text);
  EXPECT_LT(tokens.size(), text.size() / 2);
  EXPECT_EQ(one.bytes(tokens.front()), "the");
  EXPECT_EQ(one.encode("the"), (Tokens{tokens.front()}));
  EXPECT_EQ(one.find("the"), tokens.front());
  EXPECT_TRUE(one.encode("").empty());
}

TEST(Tokenizer, CutsAddedTokensOutFirst) {
  const Tokenizer one = tokenizer("llama3");
  const Token end = one.find("<|end_of_text|>").value();
  const Tokens tokens = one.encode("a<|end_of_text|>a<|end_of_text|>>");
  EXPECT_EQ(tokens, (Tokens{one.find("a").value(), end, one.find("a").value(), end + 1}));
  EXPECT_TRUE(one.is_special(end));
  EXPECT_EQ(one.decode(tokens, true), "aa");
  EXPECT_EQ(one.decode(tokens), "a<|end_of_text|>a<|end_of_text|>>");
}

TEST(Tokenizer, FindsAddedTokensInComposedText) {
  const Tokenizer one = tokenizer("qwen2");
  const Token added = one.find("e\u0301te\u0301").value();
  EXPECT_EQ(one.encode("\u00e9t\u00e9"), (Tokens{added}));
  EXPECT_EQ(one.encode("e\u0301te\u0301"), (Tokens{added}));
  EXPECT_FALSE(one.is_special(added));
}

TEST(Tokenizer, KnowsItsSizeAndItsBytes) {
  const Tokenizer one = tokenizer("gpt2");
  EXPECT_EQ(one.size(), 768);
  EXPECT_EQ(one.bytes(one.find("\n").value()), "\n");
  EXPECT_EQ(one.find("no such token"), std::nullopt);
  EXPECT_FALSE(one.is_special(768));
  for (const Token bad : {-1, 768}) {
    EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { one.decode(Tokens{bad}); }),
                         "no token " + std::to_string(bad)));
  }
}

/// A tokenizer of the test data after a patch (RFC 7396).
Tokenizer changed(const std::string& split, const std::string& patch) {
  std::ifstream file(std::string(KZERO_TEST_DATA) + "/tokenizer/" + split + "/tokenizer.json");
  auto json = nlohmann::json::parse(file);
  json.merge_patch(nlohmann::json::parse(patch));
  return Tokenizer("t.json", json.dump());
}

TEST(Tokenizer, CutsDigitsFirst) {
  const Tokenizer one = changed("gpt2", R"({"pre_tokenizer": {"type": "Sequence",
      "pretokenizers": [{"type": "Digits", "individual_digits": true},
                        {"type": "ByteLevel", "add_prefix_space": false}],
      "add_prefix_space": null, "trim_offsets": null, "use_regex": null}})");
  EXPECT_EQ(one.encode(" 12"),
            (Tokens{one.find(" ").value(), one.find("1").value(), one.find("2").value()}));
}

TEST(Tokenizer, LeavesOutBytesThatItsVocabularyLacks) {
  const std::string missing = R"({"model": {"vocab": {"\u0104": null}, "merges": [)";
  const Tokenizer one = changed("gpt2", missing + "]}}");
  const Token a = one.find("a").value(), b = one.find("b").value();
  EXPECT_EQ(one.encode("a\x04\x04"
                       "b"),
            (Tokens{a, b}));
  const Tokenizer unknown = changed("gpt2", missing + R"(], "unk_token": "c"}})");
  const Token c = one.find("c").value();
  EXPECT_EQ(unknown.encode("a\x04\x04"
                           "b"),
            (Tokens{a, c, c, b}));
  const Tokenizer joined = changed("gpt2", missing + R"(], "unk_token": "c", "fuse_unk": true}})");
  EXPECT_EQ(joined.encode("a\x04\x04"
                          "b"),
            (Tokens{a, c, b}));
}

TEST(Tokenizer, AddsTheTokensOfItsPostProcessorOnce) {
  const Tokenizer one = changed("llama3", R"({"post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "x", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"x": {"id": "x", "ids": [768], "tokens": ["x"]}}}})");
  const Token begin = one.find("<|begin_of_text|>").value(), a = one.find("a").value();
  ASSERT_EQ(begin, 768);
  EXPECT_EQ(one.encode("a"), (Tokens{a}));
  EXPECT_EQ(one.encode_framed("a"), (Tokens{begin, a}));
  EXPECT_EQ(one.encode_framed(""), (Tokens{begin}));
  EXPECT_EQ(one.encode_framed("<|begin_of_text|>a"), (Tokens{begin, a}));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const Tokenizer one = tokenizer("gpt2");
  const std::vector<std::string> bad{"abc\xff",         "abc\x80",         "abc\xc3",
                                     "abc\xc0\x80",     "abc\xed\xa0\x80", "abc\xf4\x90\x80\x80",
                                     "abc\xe2\x28\xa1", "abc\xf0\x9f\x98"};
  for (const std::string& text : bad) {
    EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { one.encode(text); }), "byte 3 is 0x"));
  }
  EXPECT_EQ(one.decode(one.encode(std::string("\0\xf4\x8f\xbf\xbf", 5))),
            std::string("\0\xf4\x8f\xbf\xbf", 5));
}

TEST(Tokenizer, EncodesALongWord) {
  const Tokenizer one = tokenizer("gpt2");
  const std::string text(1 << 20, 'a');  // takes minutes if each merge passes over the word
  EXPECT_EQ(one.decode(one.encode(text)), text);
}

TEST(Tokenizer, EncodesALongTextThatIsOneWord) {
  const Tokenizer one = tokenizer("llama2");
  std::string text(1 << 20, 'e');
  while (text.size() < 1U << 22U) text += " the memory of \u00e9 ranks";
  EXPECT_EQ(one.decode(one.encode(text)), text);
}

TEST(Tokenizer, NamesAFileThatIsNotThere) {
  EXPECT_TRUE(contains(error_of(ExitCode::files, [] { Tokenizer("/no/such.json"); }),
                       "/no/such.json: there is no such file"));
}

}  // namespace
}  // namespace kzero::tokenizer
