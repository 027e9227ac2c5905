#include "deck/writer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "deck/reader.hpp"
#include "deck/schema.hpp"
#include "deck_files.hpp"

namespace kzero::deck {
namespace {

void expect_equal(const Config& a, const Config& b) {
  for (const Key& key : keys()) EXPECT_EQ(key.get(a), key.get(b)) << key.path;
}

TEST(Schema, names_every_key_once_and_its_default_is_allowed) {
  std::set<std::string> seen;
  for (const Key& key : keys()) {
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    EXPECT_TRUE(is_allowed(key, key.get(Config{}))) << key.path;
    EXPECT_FALSE(key.doc.empty()) << key.path;
    EXPECT_EQ(find_key(key.path), &key);
  }
}

// A key bound to a neighbouring field would change two values, or the wrong one.
TEST(Schema, sets_exactly_its_own_field) {
  for (const Key& key : keys()) {
    Config config;
    const Value other = key.kind == Kind::choice    ? Value(key.choices.back())
                        : key.kind == Kind::text    ? Value("other")
                        : key.kind == Kind::texts   ? Value(std::vector<std::string>{"other"})
                        : key.kind == Kind::boolean ? Value(!std::get<bool>(key.get(config)))
                        : std::holds_alternative<Index>(key.get(config)) ? Value(Index{7777})
                                                                         : Value(0.375);
    key.set(config, other);
    EXPECT_EQ(key.get(config), other) << key.path;
    for (const Key& neighbour : keys()) {
      if (&neighbour == &key) continue;
      EXPECT_EQ(neighbour.get(config), neighbour.get(Config{})) << key.path;
    }
  }
}

TEST(Writer, writes_a_deck_that_reads_back_the_same) {
  for (const auto& name : good_deck_names()) {
    const DeckFile deck = read_deck_file(decks() / "good" / (name + ".toml"));
    const Config config = read(deck.source, deck.overrides, deck.target);
    expect_equal(config, read({"resolved", resolved(config)}, {}, deck.target));
  }
}

TEST(Writer, keeps_every_bit_of_a_number) {
  Config config;
  config.optimizer.lr = 0.1 + 0.2;
  config.optimizer.min_lr = 1.2345678901234567e-44;
  config.optimizer.eps = 1.0 / 3.0;
  config.run.peak_tflops = 123456.78901234567;
  config.checkpoint.folder = "x";
  config.run.wall_limit = 12345.678901234567;
  config.zero.bucket = (Index{1} << 33) + 1;
  for (int i = 0; i < 2000; ++i)
    config.data.files.push_back(fmt::format("data/shard_{:05}.bin", i));
  config.train.seed = 9007199254740991U;
  resolve(config, {});
  expect_equal(config, read({"resolved", resolved(config)}, {}));
}

TEST(Writer, annotates_a_deck_that_reads_as_the_defaults) {
  Config defaults;
  resolve(defaults, {});
  expect_equal(defaults, read({"defaults", annotated_defaults()}, {}));
}

TEST(Writer, names_every_key_in_the_annotated_deck) {
  const std::string text = annotated_defaults();
  for (const Key& key : keys()) {
    EXPECT_NE(text.find(fmt::format("\n{} = ", key.name())), std::string::npos) << key.path;
    EXPECT_NE(text.find(fmt::format("# {}\n", key.doc)), std::string::npos) << key.path;
  }
}

TEST(Writer, agrees_with_the_reference_page) {
  const auto page = std::filesystem::path(KZERO_TEST_DATA) / ".." / ".." / "docs" / "deck.md";
  EXPECT_EQ(text_of(page), reference_markdown())
      << "write the page anew: kzero defaults --reference > docs/deck.md";
}

}  // namespace
}  // namespace kzero::deck
