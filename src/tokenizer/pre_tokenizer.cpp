#include "tokenizer/pre_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kzero::tokenizer {

namespace {

using Json = Rules::Json;

struct KnownPattern {
  std::string_view pattern;
  Split split;
};

constexpr KnownPattern known_patterns[] = {
    {gpt2_pattern, Split::gpt2}, {llama3_pattern, Split::llama3}, {qwen2_pattern, Split::qwen2}};

/// The patterns match every character of a text. Its words are therefore the matches, whether these
/// are isolated, or everything else is removed.
SplitStep read_split(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "pattern", "behavior", "invert"});
  const bool is_inverted = rules.flag_of(value, prefix, "invert", false);
  rules.allow(Rules::at(value, "behavior"), prefix + "behavior",
              {is_inverted ? "Removed" : "Isolated"});
  const Json& pattern = Rules::at(value, "pattern");
  const auto* const known = std::ranges::find_if(known_patterns, [&](const KnownPattern& one) {
    return pattern == Json{{"Regex", one.pattern}};
  });
  if (known == std::end(known_patterns)) {
    rules.refuse(prefix + "pattern", pattern,
                 "kzero has only the patterns of GPT-2, Llama 3 and Qwen 2");
  }
  return {known->split};
}

SplitStep read_digits(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "individual_digits"});
  const bool is_single = rules.flag_of(value, prefix, "individual_digits", false);
  return {is_single ? Split::single_digits : Split::digits};
}

SplitStep read_byte_level(const Rules& rules, const Json& value, const std::string& prefix) {
  rules.allow_keys(value, prefix, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  const bool has_pattern = rules.flag_of(value, prefix, "use_regex", true);
  return {has_pattern ? Split::gpt2 : Split::none,
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

}  // namespace kzero::tokenizer
