#include "tokenizer/sections.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kzero::tokenizer {

namespace {

using Json = Rules::Json;

SplitStep read_split(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "pattern", "behavior", "invert"});
  const bool is_inverted = rules.flag_of(value, prefix, "invert", false);
  rules.allow(Rules::at(value, "behavior"), prefix + "behavior",
              {is_inverted ? "Removed" : "Isolated"});
  const Json& pattern = Rules::at(value, "pattern");
  const Json regex =
      pattern.is_object() && pattern.size() == 1 ? Rules::at(pattern, "Regex") : Json();
  if (!regex.is_string()) {
    rules.refuse(prefix + "pattern", pattern, "kzero reads only {\"Regex\": text} there");
  }
  try {
    auto read = std::make_shared<Pattern>(regex.get_ref<const std::string&>());
    return {.pattern = std::move(read), .drops_rest = is_inverted};
  } catch (const UnknownPattern& problem) {
    rules.refuse(prefix + "pattern", pattern,
                 fmt::format("kzero does not read {}; a pattern may have {}", problem.what(),
                             pattern_parts));
  }
}

SplitStep read_digits(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "individual_digits"});
  const bool is_single = rules.flag_of(value, prefix, "individual_digits", false);
  // The library asks Rust here, which knows 13 numbers of Unicode 17 too.
  constexpr std::string_view numbers = "[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]";
  return {std::make_shared<Pattern>(fmt::format("{}{}", numbers, is_single ? "" : "+"))};
}

SplitStep read_byte_level(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  const bool has_pattern = rules.flag_of(value, prefix, "use_regex", true);
  return {has_pattern ? std::make_shared<Pattern>(gpt2_pattern) : nullptr,
          rules.flag_of(value, prefix, "add_prefix_space", true)};
}

SplitStep read_step(const Rules& rules, const Json& value, const std::string& key, bool is_last) {
  const Json type = value.is_object() ? Rules::at(value, "type") : Json();
  const std::string prefix = key + ".";
  if (is_last && type == "ByteLevel") return read_byte_level(rules, value, prefix);
  if (!is_last && type == "Split") return read_split(rules, value, prefix);
  if (!is_last && type == "Digits") return read_digits(rules, value, prefix);
  rules.refuse(key, value,
               is_last ? "kzero reads only a ByteLevel there"
                       : "kzero reads only Split and Digits before a ByteLevel");
}

}  // namespace

std::vector<SplitStep> read_pre_tokenizer(const Rules& rules, const Json& value) {
  const std::string key = "pre_tokenizer";
  if (!value.is_object() || Rules::at(value, "type") != "Sequence") {
    return {read_step(rules, value, key, true)};
  }
  rules.allow_keys(value, key + ".", {"type", "pretokenizers"});
  const Json& list = Rules::at(value, "pretokenizers");
  if (!list.is_array() || list.empty()) {
    rules.refuse(key + ".pretokenizers", list, "a list that ends with a ByteLevel is needed there");
  }
  std::vector<SplitStep> steps;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool is_last = i + 1 == list.size();
    steps.push_back(
        read_step(rules, list[i], fmt::format("{}.pretokenizers[{}]", key, i), is_last));
  }
  return steps;
}

namespace {

/// The ids that a template writes for one of its special tokens.
std::vector<Token> template_ids(const Rules& rules, const Json& processor, const Json& name,
                                const std::string& prefix) {
  const std::string& text = rules.text_of(name, prefix + "single");
  const Json& tokens = Rules::at(processor, "special_tokens");
  const Json& token = tokens.is_object() ? Rules::at(tokens, text.c_str()) : tokens;
  const std::string key = prefix + "special_tokens." + text;
  if (!token.is_object() || !Rules::at(token, "ids").is_array()) {
    rules.refuse(key, token, "an object with ids is needed there");
  }
  std::vector<Token> ids;
  for (const Json& id : Rules::at(token, "ids")) ids.push_back(rules.id_of(id, key + ".ids"));
  return ids;
}

/// "single" is a list of special tokens and of the text, {"Sequence": {"id": "A"}}, which is in it
/// once.
Frame read_template(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "single", "pair", "special_tokens"});
  const Json& single = Rules::at(value, "single");
  if (!single.is_array()) rules.refuse(prefix + "single", single, "a list is needed there");
  Frame frame;
  bool has_text = false;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const std::string key = fmt::format("{}single[{}]", prefix, i);
    const Json& piece = single[i];
    const Json& special = piece.is_object() ? Rules::at(piece, "SpecialToken") : piece;
    const Json& text = piece.is_object() ? Rules::at(piece, "Sequence") : piece;
    if (special.is_object()) {
      const auto ids = template_ids(rules, value, Rules::at(special, "id"), prefix);
      auto& to = has_text ? frame.after : frame.before;
      to.insert(to.end(), ids.begin(), ids.end());
    } else if (text.is_object() && Rules::at(text, "id") == "A" && !has_text) {
      has_text = true;
    } else {
      rules.refuse(key, piece, "kzero reads only special tokens and, once, the text A there");
    }
  }
  if (!has_text) rules.refuse(prefix + "single", single, "the text A is needed there");
  return frame;
}

/// RobertaProcessing and BertProcessing: "cls" before and "sep" after the text, each a token's text
/// with its id.
Frame read_classifier(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  const auto id = [&](const char* key) {
    const Json& pair = Rules::at(value, key);
    if (!pair.is_array() || pair.size() != 2) {
      rules.refuse(prefix + key, pair, "a token's text and its id are needed there");
    }
    return rules.id_of(pair[1], prefix + key);
  };
  return {{id("cls")}, {id("sep")}};
}

Frame read_processor(const Rules& rules, const Json& value, const std::string& key) {
  const Json type = value.is_object() ? Rules::at(value, "type") : Json();
  const std::string prefix = key + ".";
  if (type == "TemplateProcessing") return read_template(rules, value, prefix);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    return read_classifier(rules, value, prefix);
  }
  if (type == "ByteLevel") {
    rules.allow_keys(value, prefix, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  rules.refuse(key, value,
               "kzero reads only TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel "
               "and a Sequence of these there");
}

}  // namespace

Frame read_post_processor(const Rules& rules, const Json& value) {
  const std::string key = "post_processor";
  if (value.is_null()) return {};
  if (!value.is_object() || Rules::at(value, "type") != "Sequence") {
    return read_processor(rules, value, key);
  }
  rules.allow_keys(value, key + ".", {"type", "processors"});
  const Json& list = Rules::at(value, "processors");
  if (!list.is_array()) rules.refuse(key + ".processors", list, "a list is needed there");
  Frame all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string one = fmt::format("{}.processors[{}]", key, i);
    const Frame frame = read_processor(rules, list[i], one);
    if (frame.before.empty() && frame.after.empty()) continue;
    if (!all.before.empty() || !all.after.empty()) {
      rules.refuse(one, list[i], "the library cannot add tokens in two steps");
    }
    all = frame;
  }
  return all;
}

}  // namespace kzero::tokenizer
