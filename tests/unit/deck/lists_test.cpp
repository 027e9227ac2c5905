// Lists of tables: [[data.blend]] and [[evaluate]].
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "deck/changes.hpp"
#include "deck/reader.hpp"
#include "deck/schema.hpp"
#include "deck/writer.hpp"
#include "deck_files.hpp"

namespace kzero::deck {
namespace {

constexpr const char* two_of_each = R"(
[data]
format = "raw"
token_bytes = 4
[[data.blend]]
name = "web"
files = ["web_*.bin"]
weight = 3
[[data.blend]]
files = ["books.bin", "more.bin"]
[[evaluate]]
files = ["wiki.bin"]
every = 5
[[evaluate]]
name = "bytes of a book"
files = ["book.txt"]
format = "bytes"
batches = 2
)";

std::string refusal_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read({"deck.toml", text}, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Lists, AreReadInTheirOrderAndCompleted) {
  const Config config = read({"deck", two_of_each}, {});
  ASSERT_EQ(config.data.blend.size(), 2U);
  EXPECT_EQ(config.data.blend[0].name, "web");
  EXPECT_EQ(config.data.blend[0].weight, 3);
  EXPECT_EQ(config.data.blend[1].name, "books.bin") << "the first of its files";
  EXPECT_EQ(config.data.blend[1].files, (std::vector<std::string>{"books.bin", "more.bin"}));
  EXPECT_EQ(config.data.blend[1].weight, 1);
  ASSERT_EQ(config.evaluate.size(), 2U);
  EXPECT_EQ(config.evaluate[0].format, DataFormat::raw) << "as data.format";
  EXPECT_EQ(config.evaluate[0].token_bytes, 4);
  EXPECT_EQ(config.evaluate[0].every, 5);
  EXPECT_EQ(config.evaluate[1].format, DataFormat::bytes);
  EXPECT_EQ(config.evaluate[1].token_bytes, 0);
  EXPECT_EQ(config.evaluate[1].batches, 2);
}

TEST(Lists, MayBeWrittenOnOneLine) {
  const Config config = read({"deck",
                              "data.blend = [{files = [\"a\"], weight = 0.5}, {files = [\"b\"]}]\n"
                              "evaluate = []\n"},
                             {});
  ASSERT_EQ(config.data.blend.size(), 2U);
  EXPECT_EQ(config.data.blend[0].weight, 0.5);
  EXPECT_TRUE(config.evaluate.empty());
}

TEST(Lists, AreWrittenAsTheyAreRead) {
  const Config config = read({"deck", two_of_each}, {"data.blend[1].weight=0.1"});
  const Config again = read({"resolved", resolved(config)}, {});
  ASSERT_EQ(keys_in(again).size(), keys_in(config).size());
  for (const Key* key : keys_in(config)) EXPECT_EQ(key->get(again), key->get(config)) << key->path;
}

TEST(Lists, AreOverriddenByTheNumberOfTheTable) {
  const Config config = read({"deck", two_of_each}, {"data.blend[1].weight=2", "evaluate="});
  EXPECT_EQ(config.data.blend[0].weight, 3);
  EXPECT_EQ(config.data.blend[1].weight, 2);
  EXPECT_TRUE(config.evaluate.empty());
  EXPECT_TRUE(read({"deck", two_of_each}, {"data.blend=", "data.files=a"}).data.blend.empty());
  EXPECT_EQ(refusal_of(two_of_each, {"data.blend[2].weight=2"}),
            "command line: 'data.blend[2].weight=2': the deck has 2 tables [[data.blend]], counted "
            "from 0; an override can only change an existing table");
  EXPECT_EQ(refusal_of("", {"evaluate=4"}),
            "command line: 'evaluate=4': 'evaluate' is a list of tables; an override sets a key of "
            "one that the deck has, such as evaluate[0].name, or removes them all with evaluate=");
  EXPECT_EQ(
      refusal_of(two_of_each, {"data.blend[0].wieght=2"}),
      "command line: 'data.blend[0].wieght=2': key 'data.blend[0].wieght' is not known (value "
      "2); did you mean 'data.blend[0].weight'?");
}

TEST(Lists, RefuseOverridesThatNameNoTable) {
  const auto refuses = [](const std::string& override, const std::string& reason) {
    EXPECT_EQ(refusal_of(two_of_each, {override}),
              fmt::format("command line: '{}': {}", override, reason));
  };
  const std::string has = "the deck has 2 tables [[data.blend]], counted from 0";
  for (const char* number : {"[-1]", "[x]", "[00]", "[ 0 ]", "[]", "[0", "[0]weight"})
    refuses(fmt::format("data.blend{}.weight=2", number),
            fmt::format("'{}' is not the number of a table; {}", number, has));
  refuses("data.blend[0=2", "'[0' is not the number of a table; " + has);
  for (const char* number : {"2", "4000000000", "99999999999999999999"})
    refuses(fmt::format("data.blend[{}].weight=2", number),
            has + "; an override can only change an existing table");
  for (const char* path : {"data.blend", "data.blend[0]", "data.blend.weight"})
    refuses(fmt::format("{}=2", path),
            "'data.blend' is a list of tables; an override sets a key of one that the deck has, "
            "such as data.blend[0].name, or removes them all with data.blend=");
  refuses("data.blend[0].lr=2",
          "key 'data.blend[0].lr' is not known (value 2); the keys of [[data.blend]] are name, "
          "files, weight");
  EXPECT_EQ(refusal_of(two_of_each, {"data.blend[0].weight=2", "data.blend="}),
            "command line: 'data.blend=': removes the table of 'data.blend[0].weight', which is "
            "given, too");
}

TEST(Lists, HaveAMaximumNumberOfTables) {
  std::string text;
  for (Index i = 0; i < max_tables; ++i) text += fmt::format("[[evaluate]]\nfiles = [\"{}\"]\n", i);
  EXPECT_EQ(refusal_of(text), "");
  EXPECT_EQ(refusal_of(text + "[[evaluate]]\n[[evaluate]]\n"),
            "deck.toml:201:1: [[evaluate]] may have at most 100 tables");
}

TEST(Lists, ShowWhatChanged) {
  const auto resolved_with = [](const std::vector<std::string>& overrides) {
    return resolved(read({"deck", two_of_each}, overrides));
  };
  const std::string deck = resolved_with({});
  EXPECT_TRUE(changes(deck, deck).empty());
  EXPECT_EQ(changes(deck, resolved_with({"data.blend[0].weight=2", "evaluate="})),
            (std::vector<std::string>{"data.blend[0].weight is 2.0, was 3.0",
                                      "evaluate has 0 tables, had 2"}));
  EXPECT_EQ(changes("[data]\nfiles = [\"a\"]\n", "[[data.blend]]\nfiles = [\"a\"]\n"),
            (std::vector<std::string>{"data.blend has 1 table, had 0"}));
}

TEST(Lists, HaveKeysThatAreFoundByTheirPaths) {
  for (const TableList& list : table_lists()) {
    for (const auto& table : list.keys) {
      for (const Key& key : table) EXPECT_EQ(find_key(key.path), &key) << key.path;
    }
    for (const Key& key : list.keys.front()) {
      EXPECT_FALSE(key.doc.empty()) << key.path;
      const bool must_be_set = list.path == "train.phase";
      EXPECT_EQ(is_allowed(key, key.get(Config{})), !must_be_set) << key.path;
    }
  }
}

// A key bound to a neighbouring field would change two values, or the wrong one.
TEST(Lists, SetExactlyTheirOwnField) {
  for (const TableList& list : table_lists()) {
    for (const Key& key : list.keys[2]) {
      Config config;
      list.resize(config, 4);
      const Value other = key.kind == Kind::choice  ? Value(key.choices.back())
                          : key.kind == Kind::text  ? Value("other")
                          : key.kind == Kind::texts ? Value(std::vector<std::string>{"other"})
                          : key.kind == Kind::real  ? Value(0.375)
                                                    : Value(Index{3});
      key.set(config, other);
      EXPECT_EQ(key.get(config), other) << key.path;
      for (const Key* neighbour : keys_in(config)) {
        if (neighbour == &key) continue;
        EXPECT_EQ(neighbour->get(config), neighbour->get(Config{})) << key.path;
      }
    }
  }
}

}  // namespace
}  // namespace kzero::deck
