// Refused files. Each differs from a valid file in one value.
#include "tokenizer/definition.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "support/error_text.hpp"
#include "tokenizer/tokenizer.hpp"

namespace kzero::tokenizer {
namespace {

using Json = nlohmann::json;
using tests::contains;
using tests::error_of;

Json good(const std::string& split = "gpt2") {
  std::ifstream file(std::string(KZERO_TEST_DATA) + "/tokenizer/" + split + "/tokenizer.json");
  return Json::parse(file);
}

/// The reader's message for the file after a patch (RFC 7396).
std::string refusal(const std::string& patch, const std::string& split = "gpt2") {
  Json json = good(split);
  json.merge_patch(Json::parse(patch));
  return error_of(ExitCode::files, [&] { read_definition("t.json", json.dump()); });
}

TEST(Definition, IsReadFromAGoodFile) {
  const Definition gpt2 = read_definition("t.json", good().dump());
  EXPECT_EQ(gpt2.vocabulary.size(), 768U);
  EXPECT_EQ(gpt2.merges.size(), 768U - 256U - 1U);
  const Definition llama3 = read_definition("t.json", good("llama3").dump());
  EXPECT_TRUE(llama3.takes_whole_words);
  ASSERT_EQ(llama3.steps.size(), 2U);
  EXPECT_TRUE(llama3.steps[0].pattern != nullptr && llama3.steps[1].pattern == nullptr);
  EXPECT_TRUE(read_definition("t.json", good("qwen2").dump()).is_composed);
}

TEST(Definition, ReadsTheOldSpelling) {
  Json json = good();
  for (Json& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  json["model"].erase("type");
  json["model"].erase("byte_fallback");
  json["model"].erase("ignore_merges");
  json["model"]["merges"].insert(json["model"]["merges"].begin(), "#version: 0.2");
  const std::string text = "the memory of the ranks' parameters";
  EXPECT_EQ(Tokenizer("t.json", json.dump()).encode(text),
            Tokenizer("t.json", good().dump()).encode(text));
}

TEST(Definition, RefusesOtherRules) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"model": {"type": "Unigram"}})", R"(t.json: model.type is "Unigram")"},
      {R"({"model": {"dropout": 0.1}})", "model.dropout is 0.1"},
      {R"({"model": {"byte_fallback": 1}})", "model.byte_fallback is 1"},
      {R"({"model": {"byte_fallback": true}})", "pre_tokenizer is {"},
      {R"({"model": {"continuing_subword_prefix": "##"}})", "model.continuing_subword_prefix"},
      {R"({"model": {"end_of_word_suffix": "</w>"}})", "model.end_of_word_suffix"},
      {R"({"model": {"new_rule": 1}})", "model.new_rule is 1, but kzero knows no such rule"},
      {R"({"normalizer": {"type": "Lowercase"}})", "normalizer is {"},
      {R"({"pre_tokenizer": {"type": "Whitespace"}})", "pre_tokenizer is {"},
      {R"({"pre_tokenizer": {"use_regex": 1}})", "pre_tokenizer.use_regex is 1"},
      {R"({"pre_tokenizer": {"type": "Sequence", "add_prefix_space": null, "trim_offsets": null,
           "use_regex": null, "pretokenizers": []}})",
       "pre_tokenizer.pretokenizers is [], but a list that ends with a ByteLevel is needed"},
      {R"({"pre_tokenizer": {"type": "Sequence", "add_prefix_space": null, "trim_offsets": null,
           "use_regex": null, "pretokenizers": [{"type": "Punctuation"}, {"type": "ByteLevel"}]}})",
       "pre_tokenizer.pretokenizers[0] is {"},
      {R"({"post_processor": {"type": "Surprise"}})", "post_processor is {"},
      {R"({"post_processor": {"type": "BertProcessing", "sep": ["x", 900], "cls": ["y", 1]}})",
       "it adds token 900, which the file does not have"},
      {R"({"post_processor": {"type": "TemplateProcessing", "single": []}})",
       "post_processor.single is [], but the text A is needed there"},
      {R"({"decoder": null})", "decoder is null"},
      {R"({"surprise": 1})", "surprise is 1"},
      {R"({"model": {"vocab": {"a": null}, "unk_token": "<unk>"}})",
       "model.unk_token is \"<unk>\", but model.vocab has neither this token nor one for byte 97"},
      {R"({"model": {"vocab": {"a": 2}}})", "has this id too"},
      {R"({"model": {"vocab": {"a": -1}}})", "model.vocab.a is -1"},
      {R"({"model": {"merges": [["a", "qq"]]}})", "model.merges[0]"},
      {R"({"model": {"merges": ["a b c"]}})", "model.merges[0]"},
      {R"({"model": {"merges": null}})", "model.merges is null"},
      {R"({"added_tokens": [{"id": 900, "content": "x!", "single_word": false, "lstrip": false,
           "rstrip": false, "special": true, "normalized": false}]})",
       "added_tokens[0].id is 900, but the tokenizers library reads it as 768"},
      {R"({"added_tokens": [{"id": 768, "content": "x!", "single_word": false, "lstrip": 1,
           "rstrip": false, "special": true, "normalized": false}]})",
       "added_tokens[0].lstrip is 1, but kzero reads only false or true there"},
      {R"({"added_tokens": [{"id": 0, "content": "", "single_word": false, "lstrip": false,
           "rstrip": false, "special": true, "normalized": false}]})",
       "added_tokens[0].content"},
  };
  for (const auto& [patch, message] : cases) {
    const std::string said = refusal(patch);
    EXPECT_TRUE(contains(said, message)) << patch << "\n" << said;
    EXPECT_TRUE(contains(said, "t.json: ")) << said;
  }
}

TEST(Definition, RefusesOtherRulesOfPieces) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"normalizer": {"type": "NFC", "normalizers": null}})", "normalizer is {"},
      {R"({"normalizer": null})", "pre_tokenizer is null, but"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581"}})",
       "pre_tokenizer is {"},
      {R"({"normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "_"}})",
       "pre_tokenizer.replacement is \"_\""},
      {R"({"normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
           "prepend_scheme": "last"}})",
       "pre_tokenizer.prepend_scheme is \"last\""},
      {R"({"normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
           "add_prefix_space": false}})",
       "pre_tokenizer.add_prefix_space is false, but prepend_scheme is not \"never\""},
      {R"({"decoder": {"type": "ByteLevel", "decoders": null}})", "decoder is {"},
      {R"({"decoder": {"decoders": [{"type": "Fuse"}]}})", "decoder is {"},
      {R"({"model": {"vocab": {"<0x0A>": null}}})",
       "model.byte_fallback is true, but model.vocab has no \"<0x0A>\""},
      {R"({"model": {"merges": [["<0x0A>", "a"]]}})",
       "model.merges[0] is [\"<0x0A>\",\"a\"], but kzero merges no \"<0x0A>\", which is a byte"},
  };
  for (const auto& [patch, message] : cases) {
    const std::string said = refusal(patch, "llama2");
    EXPECT_TRUE(contains(said, message)) << patch << "\n" << said;
  }
}

TEST(Definition, RefusesOtherPatterns) {
  const std::vector<std::pair<Json, std::string>> cases{
      {{{"Regex", R"(\w+)"}},
       R"(pattern is {"Regex":"\\w+"}, but kzero does not read \w, its character 1; a pattern may)"},
      {{{"String", " "}}, "pattern is {\"String\":\" \"}, but kzero reads only {\"Regex\": text}"},
      {"a", "pattern is \"a\", but"},
  };
  for (const auto& [pattern, message] : cases) {
    Json json = good("llama3");
    json["pre_tokenizer"]["pretokenizers"][0]["pattern"] = pattern;
    const std::string said =
        error_of(ExitCode::files, [&] { read_definition("t.json", json.dump()); });
    EXPECT_TRUE(contains(said, "pre_tokenizer.pretokenizers[0]." + message)) << said;
  }
}

TEST(Definition, RefusesWhatIsNotJson) {
  for (const std::string text : {"", "[]", "{", "null"}) {
    error_of(ExitCode::files, [&] { read_definition("t.json", text); });
  }
}

class Damage : public testing::TestWithParam<const char*> {};

TEST_P(Damage, IsSurvived) {
  const std::string text = good(GetParam()).dump();
  for (std::size_t at = 0; at < text.size(); at += 97) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 5);
    try {
      const Tokenizer still_good("t.json", damaged);
      still_good.encode("any text");
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "t.json: ")) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Definition, Damage, testing::Values("qwen2", "llama2"));

}  // namespace
}  // namespace kzero::tokenizer
