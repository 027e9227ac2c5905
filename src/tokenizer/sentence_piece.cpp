#include "tokenizer/sentence_piece.hpp"

#include <algorithm>

namespace kzero::tokenizer {

namespace {

using Json = Rules::Json;

Json replacing(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// Returns whether the normalizer writes marks; if so, it may put one before each text.
bool read_normalizer(const Rules& rules, const Json& value, SpaceMarks& marks) {
  const Json replace = replacing(" ", space_mark);
  const Json prepend{{"type", "Prepend"}, {"prepend", space_mark}};
  const auto is = [&](const std::vector<Json>& list) {
    return value == Json{{"type", "Sequence"}, {"normalizers", list}};
  };
  if (value.is_null() || is({})) return false;
  if (value == replace || is({replace})) return true;
  if (!is({prepend, replace}) && !is({replace, prepend})) {
    rules.refuse("normalizer", value,
                 "where model.byte_fallback is true, kzero reads only null, Replace of \" \" by "
                 "\"\u2581\", and a Sequence of Prepend of \"\u2581\" and this Replace there");
  }
  marks.first = FirstMark::always;
  return true;
}

void read_metaspace(const Rules& rules, const Json& value, SentencePiece& read) {
  const std::string prefix = "pre_tokenizer.";
  rules.allow_keys(value, prefix,
                   {"type", "replacement", "prepend_scheme", "split", "add_prefix_space"});
  rules.allow(Rules::at(value, "replacement"), prefix + "replacement", {space_mark});
  const Json& scheme = Rules::at(value, "prepend_scheme");
  rules.allow(scheme, prefix + "prepend_scheme", {nullptr, "always", "first", "never"});
  if (!rules.flag_of(value, prefix, "add_prefix_space", true) && scheme != "never") {
    rules.refuse(prefix + "add_prefix_space", false, "prepend_scheme is not \"never\"");
  }
  read.marks.is_late = true;
  read.marks.first = scheme == "never"   ? FirstMark::never
                     : scheme == "first" ? FirstMark::if_missing_at_the_top
                                         : FirstMark::if_missing;
  if (!rules.flag_of(value, prefix, "split", true)) return;
  read.steps.push_back({std::make_shared<Pattern>("\u2581[^\u2581]*|[^\u2581]+")});
}

/// Once the normalizer has written the marks, Gemma's split at spaces finds none.
void read_pre_tokenizer(const Rules& rules, const Json& value, bool is_marked,
                        SentencePiece& read) {
  const bool is_metaspace = value.is_object() && Rules::at(value, "type") == "Metaspace";
  if (!is_marked && is_metaspace) return read_metaspace(rules, value, read);
  const Json at_spaces{{"type", "Split"},
                       {"pattern", {{"String", " "}}},
                       {"behavior", "MergedWithPrevious"},
                       {"invert", false}};
  if (is_marked && (value.is_null() || value == at_spaces)) return;
  rules.refuse("pre_tokenizer", value,
               is_marked
                   ? "where model.byte_fallback is true and the normalizer replaces spaces, "
                     "kzero reads only null and a Split at \" \" that is MergedWithPrevious there"
                   : "where model.byte_fallback is true and the normalizer replaces no "
                     "spaces, kzero reads only Metaspace there");
}

void read_decoder(const Rules& rules, const Json& value, SpaceMarks& marks) {
  const auto strip = [](int count) {
    return Json{{"type", "Strip"}, {"content", " "}, {"start", count}, {"stop", 0}};
  };
  std::vector<Json> steps{
      replacing(space_mark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  const auto is = [&](const std::vector<Json>& list) {
    return value == Json{{"type", "Sequence"}, {"decoders", list}};
  };
  if (is(steps)) return;
  steps.push_back(strip(1));
  marks.is_stripped = is(steps);
  steps.back() = strip(0);
  if (marks.is_stripped || is(steps)) return;
  rules.refuse("decoder", value,
               "where model.byte_fallback is true, kzero reads only a Sequence of Replace of "
               "\"\u2581\" by \" \", ByteFallback, Fuse, and perhaps Strip of 0 or 1 \" \" at the "
               "start there");
}

}  // namespace

bool has_byte_fallback(const Json& file) {
  const Json& model = Rules::at(file, "model");
  return model.is_object() && Rules::at(model, "byte_fallback") == true;
}

SentencePiece read_sentence_piece(const Rules& rules, const Json& file) {
  SentencePiece read;
  const bool is_marked = read_normalizer(rules, Rules::at(file, "normalizer"), read.marks);
  read_pre_tokenizer(rules, Rules::at(file, "pre_tokenizer"), is_marked, read);
  read_decoder(rules, Rules::at(file, "decoder"), read.marks);
  return read;
}

}  // namespace kzero::tokenizer
