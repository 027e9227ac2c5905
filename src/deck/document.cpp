#include "deck/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "deck/problem.hpp"
#include "deck/toml.hpp"
#include "deck/toml_faults.hpp"

namespace kzero::deck {

namespace {

/// Numbers that do not fit 64 bits: the parser is given a 0 in their place.
using NumbersOutOfRange = std::map<std::size_t, std::size_t>;  // offsets and bytes

constexpr std::size_t max_numbers_out_of_range = 100;  // each costs a pass over the text

Value value_of(const toml::node& node) {
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* integer = node.as_integer()) return Index{integer->get()};
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  const toml::array* list = node.as_array();
  if (list == nullptr) return std::monostate{};
  std::vector<std::string> texts;
  for (const toml::node& element : *list) {
    const auto* text = element.as_string();
    if (text == nullptr) return std::monostate{};
    texts.push_back(text->get());
  }
  return texts;
}

/// Builds the sections of a parsed text.
class SectionBuilder {
 public:
  SectionBuilder(const Locator& locator, const NumbersOutOfRange& out_of_range)
      : locator_(locator), out_of_range_(out_of_range) {}

  std::vector<Section> build(const toml::table& root) const {
    std::vector<Section> sections(1), lists;
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (node.is_array_of_tables()) {
        add_list(name, *node.as_array(), lists);
      } else if (const toml::table* table = node.as_table()) {
        sections.push_back(section_of(name, key, *table, lists));
      } else {
        sections.front().entries.push_back(entry_of(key, node));
      }
    }
    std::ranges::move(lists, std::back_inserter(sections));
    return sections;
  }

 private:
  std::size_t offset(const toml::source_position& at) const {
    return locator_.offset(at.line, at.column);
  }

  Section section_of(const std::string& name, const toml::key& key, const toml::table& table,
                     std::vector<Section>& lists) const {
    Section section{name, locator_.place(offset(start_of(key, table)))};
    for (const auto& [inner_key, inner] : table) {
      if (inner.is_array_of_tables()) {
        add_list(fmt::format("{}.{}", name, inner_key.str()), *inner.as_array(), lists);
      } else {
        section.entries.push_back(entry_of(inner_key, inner));
      }
    }
    return section;
  }

  void add_list(const std::string& name, const toml::array& list,
                std::vector<Section>& lists) const {
    Index number = 0;
    for (const toml::node& table : list) {
      Section section{name, locator_.place(offset(table.source().begin))};
      section.number = number++;
      for (const auto& [key, node] : *table.as_table())
        section.entries.push_back(entry_of(key, node));
      lists.push_back(std::move(section));
    }
  }

  Entry entry_of(const toml::key& key, const toml::node& node) const {
    const std::size_t begin = offset(node.source().begin);
    std::size_t bytes = offset(node.source().end) - begin;
    Entry entry{.name = std::string(key.str()),
                .key_location = locator_.place(offset(start_of(key, node))),
                .value_location = locator_.place(begin),
                .value = value_of(node),
                .shown = ""};
    if (const auto number = out_of_range_.find(begin); number != out_of_range_.end()) {
      bytes = number->second;
      entry.value = std::monostate{};
    }
    entry.shown = printable_start(locator_.text().substr(begin, bytes));
    if (node.is_table()) entry.shown = "a table";
    if (node.is_array_of_tables()) entry.shown = "a list of tables";  // within a table of a list
    return entry;
  }

  const Locator& locator_;
  const NumbersOutOfRange& out_of_range_;
};

}  // namespace

std::vector<Section> read_document(const Source& source, std::vector<Problem>& problems) {
  const Locator locator(source.name, source.text);
  // The parser's position of such a byte is that of the character before it.
  if (const auto at = first_invalid_byte(source.text)) {
    const auto byte = static_cast<unsigned char>(source.text[*at]);
    problems.push_back({locator.place(*at), fmt::format("byte 0x{:02x} is not UTF-8", byte)});
    return {};
  }
  if (const auto hazard = find_toml_hazard(source.text)) {
    problems.push_back({locator.place(hazard->offset), hazard->reason});
    return {};
  }
  std::string text = source.text;
  NumbersOutOfRange out_of_range;
  for (;;) {
    try {
      const toml::table root = toml::parse(text);
      return SectionBuilder(locator, out_of_range).build(root);
    } catch (const toml::parse_error& error) {
      const auto number = number_out_of_range(error, locator);
      if (!number || out_of_range.size() == max_numbers_out_of_range) {
        problems.push_back(syntax_problem(error, locator));
        return {};
      }
      out_of_range[number->offset] = number->bytes;
      text.replace(number->offset, number->bytes, number->bytes, ' ');
      text[number->offset] = '0';
    }
  }
}

}  // namespace kzero::deck
