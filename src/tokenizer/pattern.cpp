#include "tokenizer/pattern.hpp"

#include <algorithm>
#include <iterator>

namespace kzero::tokenizer {

bool CharacterSet::contains(const Character& character) const {
  const bool is_in = (character.properties & properties) != 0 ||
                     std::ranges::any_of(ranges, [&](const auto& range) {
                       return range.first <= character.code && character.code <= range.second;
                     });
  return is_in != is_negated;
}

Pattern::Pattern(std::string_view text) {
  for (const auto& sequence : read_pattern(text)) {
    begins_.push_back(steps_.size());
    for (const PatternPart& part : sequence) add(part);
    add(Step{});
  }
  for (std::size_t code = 0; code < ascii; ++code) {
    std::ranges::copy_if(begins_, std::back_inserter(begins_of_[code]),
                         [&](std::size_t at) { return may_begin(at, code); });
  }
}

std::size_t Pattern::add(Step step) {
  steps_.push_back(step);
  return steps_.size() - 1;
}

void Pattern::add(const std::vector<PatternPart::Sequence>& alternatives) {
  std::vector<std::size_t> jumps;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const bool is_last = i + 1 == alternatives.size();
    const std::size_t choice = is_last ? 0 : add(Step{Step::Kind::either});
    for (const PatternPart& part : alternatives[i]) add(part);
    if (is_last) break;
    jumps.push_back(add(Step{Step::Kind::jump}));
    steps_[choice].other = steps_.size();
  }
  for (const std::size_t jump : jumps) steps_[jump].other = steps_.size();
}

void Pattern::add(const PatternPart& part) {
  if (part.kind == PatternPart::Kind::characters) {
    Set set{part.set};
    for (std::size_t code = 0; code < ascii; ++code) {
      const char byte = static_cast<char>(code);
      set.has[code] = part.set.contains(character_at({&byte, 1}, 0));
    }
    add(Step{Step::Kind::characters, part.is_possessive, 0, sets_.size(), part.min, part.max});
    sets_.push_back(std::move(set));
    return;
  }
  const bool is_absent = part.kind == PatternPart::Kind::absent;
  const std::size_t choice = is_absent       ? add(Step{Step::Kind::absent})
                             : part.min == 0 ? add(Step{Step::Kind::either})
                                             : steps_.size();
  add(part.alternatives);
  if (is_absent) add(Step{});
  if (is_absent || part.min == 0) steps_[choice].other = steps_.size();
}

/// Returns false only if no match of the steps from `at` on begins with an ASCII character.
bool Pattern::may_begin(std::size_t at, std::size_t code) const {
  const Step& step = steps_[at];
  switch (step.kind) {
    case Step::Kind::characters:
      return sets_[step.set].has[code] || (step.min == 0 && may_begin(at + 1, code));
    case Step::Kind::either:
      return may_begin(at + 1, code) || may_begin(step.other, code);
    case Step::Kind::jump:
    case Step::Kind::absent:
      return may_begin(step.other, code);
    default:
      return true;
  }
}

std::optional<std::size_t> Pattern::match(std::string_view text, std::size_t begin) const {
  const auto first = static_cast<unsigned char>(text[begin]);
  for (const std::size_t at : first < ascii ? begins_of_[first] : begins_) {
    if (const auto end = run(at, text, begin)) return end;
  }
  return {};
}

/// The end of the match of the steps from `at` on. Calls itself at most once for each step, because
/// no step leads back.
std::optional<std::size_t> Pattern::run(std::size_t at, std::string_view text,
                                        std::size_t from) const {
  for (;;) {
    const Step& step = steps_[at];
    switch (step.kind) {
      case Step::Kind::characters:
        return repeat(at, text, from);
      case Step::Kind::either:
        if (const auto end = run(at + 1, text, from)) return end;
        at = step.other;
        break;
      case Step::Kind::absent:
        if (run(at + 1, text, from)) return {};
        at = step.other;
        break;
      case Step::Kind::jump:
        at = step.other;
        break;
      default:
        return from;
    }
  }
}

/// Matches as many characters as possible, and fewer if the steps that follow do not match then.
std::optional<std::size_t> Pattern::repeat(std::size_t at, std::string_view text,
                                           std::size_t from) const {
  const Step& step = steps_[at];
  const Set& set = sets_[step.set];
  std::size_t end = from, least = from, count = 0;
  for (; count < step.max && end < text.size(); ++count) {
    if (count == step.min) least = end;
    const std::size_t next = after(set, text, end);
    if (next == end) break;
    end = next;
  }
  if (count < step.min) return {};
  if (count == step.min) least = end;
  for (;;) {
    if (const auto found = run(at + 1, text, end)) return found;
    if (end == least || step.is_possessive) return {};
    end = begin_of_character(text, end);
  }
}

/// The end of the character at `from`, if it is in the set; `from` otherwise.
std::size_t Pattern::after(const Set& set, std::string_view text, std::size_t from) const {
  const auto first = static_cast<unsigned char>(text[from]);
  if (first < ascii) return set.has[first] ? from + 1 : from;
  const Character character = character_at(text, from);
  return set.all.contains(character) ? character.end : from;
}

}  // namespace kzero::tokenizer
