#include "deck/reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/error.hpp"
#include "deck/schema.hpp"
#include "deck/writer.hpp"
#include "deck_files.hpp"
#include "support/bad_decks.hpp"

namespace kzero::deck {
namespace {

Config read_good(const std::string& name) {
  const DeckFile deck = read_deck_file(decks() / "good" / (name + ".toml"));
  return read(deck.source, deck.overrides, deck.target);
}

std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read({"deck.toml", text}, overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Reader, gives_defaults_for_an_empty_deck) {
  const Config config = read_good("empty");
  EXPECT_EQ(config.model.layers, Model{}.layers);
  EXPECT_EQ(config.optimizer.lr, Optimizer{}.lr);
  EXPECT_EQ(config.model.feed_forward, 4 * Model{}.hidden);
}

TEST(Reader, gives_the_defaults_of_the_kind_of_optimizer) {
  const auto beta2 = [](const std::vector<std::string>& overrides) {
    return read({"deck", "[optimizer]\nkind = \"lion\"\n"}, overrides).optimizer.beta2;
  };
  EXPECT_EQ(beta2({}), 0.99);
  EXPECT_EQ(beta2({"optimizer.beta2=0.5"}), 0.5);
  EXPECT_EQ(beta2({"optimizer.kind=adamw"}), 0.95);
  EXPECT_EQ(beta2({"optimizer.kind=lamb"}), 0.999);
  EXPECT_EQ(
      read({"resolved", resolved(read({"deck", ""}, {"optimizer.kind=lion"}))}, {}).optimizer.beta2,
      0.99)
      << "what is printed is what is used";
}

TEST(Reader, reads_every_kind_of_value) {
  const Config config = read_good("all_tables");
  EXPECT_EQ(config.model.hidden, 96);
  EXPECT_FALSE(config.model.tied_embeddings);
  EXPECT_EQ(config.zero.bucket, 65536);
  EXPECT_EQ(config.recompute.mode, RecomputeMode::full);
  EXPECT_EQ(config.recompute.offload, Offload::host);
  EXPECT_EQ(config.train.precision, Dtype::bf16);
  EXPECT_EQ(config.train.seed, 42U);
  EXPECT_EQ(config.optimizer.min_lr, 0.0);
  EXPECT_EQ(config.optimizer.schedule, Schedule::linear);
  EXPECT_EQ(config.data.files, (std::vector<std::string>{"a.txt", "b*.txt"}));
  EXPECT_EQ(config.run.wall_limit, 5400);
  EXPECT_EQ(config.run.stop_file, "stop me");
}

TEST(Reader, reads_dotted_keys_and_inline_tables) {
  const Config config = read_good("dotted_and_inline");
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.train.steps, 7);
  EXPECT_EQ(config.train.seed, 1000U);
}

TEST(Reader, lets_overrides_win_over_the_deck) {
  const Config config = read_good("overrides");
  EXPECT_EQ(config.train.precision, Dtype::fp16);
  EXPECT_EQ(config.train.steps, 12);
  EXPECT_EQ(config.data.files, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(config.data.validation_files, (std::vector<std::string>{"v w.txt"}));
  EXPECT_EQ(config.checkpoint.folder, "my out");
  EXPECT_EQ(config.run.wall_limit, 7200);
  EXPECT_EQ(config.zero.bucket, 1 << 20);
  EXPECT_EQ(config.optimizer.lr, 2e-3);
  EXPECT_FALSE(config.checkpoint.resume);
}

TEST(Reader, reads_whole_numbers_as_integers) {
  const Config config = read({"deck", "[train]\nsteps = 1e3\n[zero]\nbucket = 4096.0\n"},
                             {"model.layers=4.0", "optimizer.warmup=1e2", "train.seed=1e15"});
  EXPECT_EQ(config.train.steps, 1000);
  EXPECT_EQ(config.zero.bucket, 4096);
  EXPECT_EQ(config.model.layers, 4);
  EXPECT_EQ(config.optimizer.warmup, 100);
  EXPECT_EQ(config.train.seed, 1'000'000'000'000'000U);
}

TEST(Reader, names_only_keys_that_exist_for_other_programs_names) {
  for (const char* name : {"n_layer", "n_embd", "n_head", "block_size", "batch_size",
                           "learning_rate", "max_iters", "num_hidden_layers", "Train-Iters"}) {
    const std::string_view path = path_of_common_name(name);
    EXPECT_NE(find_key(path), nullptr) << name;
  }
  for (const Key& key : keys()) EXPECT_EQ(path_of_common_name(key.name()), "") << key.path;
}

TEST(Reader, keeps_bare_override_text_that_holds_equals_signs_and_dots) {
  const Config config = read({"deck", ""}, {"checkpoint.folder=out/a=b.1", "data.files="});
  EXPECT_EQ(config.checkpoint.folder, "out/a=b.1");
  EXPECT_TRUE(config.data.files.empty());
}

TEST(Reader, reads_windows_line_ends_and_strange_strings) {
  EXPECT_EQ(read_good("windows_lines").model.layers, 3);
  EXPECT_EQ(read_good("strange_strings").data.files,
            (std::vector<std::string>{"a\"b.txt", "c:\\d.txt", "x\"y", "größe #[{.txt"}));
}

TEST(Reader, reads_a_list_in_one_long_line) {
  std::string files;
  for (int i = 0; i < 12000; ++i) files += fmt::format("\"file_{}\", ", i);
  EXPECT_EQ(read({"deck", "[data]\nfiles = [" + files + "]"}, {}).data.files.size(), 12000U);
}

std::string key_of(int dots, const std::string& part) {
  std::string key = part;
  for (int i = 0; i < dots; ++i) key += "." + part;
  return key;
}

TEST(Reader, limits_the_parts_of_a_key) {
  const std::string longest = key_of(31, "a"), longer = key_of(32, "a");
  EXPECT_EQ(message_of(longer + " = 1"), "deck.toml:1:64: a key has at most 32 parts");
  EXPECT_EQ(message_of("x = {" + longer + " = 1}"), "deck.toml:1:69: a key has at most 32 parts");
  const std::string message = message_of("[" + longest + "]\n" + longest + " = 1");
  EXPECT_EQ(message.substr(0, message.find(';')), "deck.toml:1:1: table 'a' is not known");
  EXPECT_EQ(
      read({"deck", "[checkpoint]\nfolder = '" + longer + "'  # " + longer}, {}).checkpoint.folder,
      longer);
}

// The parser's white-space test is undefined for some of these, so they must not reach it.
TEST(Reader, refuses_letters_outside_of_quotes) {
  const std::string ends = R"( is allowed only within quotes ("...") and comments)";
  for (const char* letter : {"ö", "\u00A0", "\u3000", "ﻻ", "😀"}) {
    const std::string place = fmt::format("'{}'", letter);
    for (const char* before : {"", "[", "x", "x = ", "x = [1, ", "x = 1 ", "x = {", "x = 'a'"}) {
      const std::string message = message_of(fmt::format("{}{}", before, letter));
      EXPECT_EQ(message.substr(message.find('\'')), place + ends) << before;
    }
    EXPECT_EQ(
        message_of(fmt::format("# {}\n[checkpoint]\nfolder = \"\"\"{}\"\"\"", letter, letter)), "");
    const std::string continued = message_of(fmt::format("x = \"\"\"a\\\n \n{}\"\"\"", letter));
    EXPECT_EQ(continued, fmt::format("deck.toml:3:1: '{}' must not follow a backslash", letter));
  }
}

TEST(Reader, finds_the_first_of_two_definitions_in_the_table_that_is_open) {
  // When `order` is repeated, the open [data] is neither the first nor the last table by name.
  EXPECT_EQ(message_of("[train]\nsteps = 1\n[data]\norder = 1\n[zero.x]\n[model]\nx.order = 1\n"
                       "x.order = 2\n"),
            "deck.toml:8:1: 'x.order' is given twice, first in line 7");
  const std::string text = "[train.x]\n[data.x]\ny = 1\n[data]\n";
  EXPECT_EQ(message_of(text + "x.y = 2"), "deck.toml:5:1: 'x.y' is given twice, first in line 3");
  EXPECT_EQ(message_of(text + "x.z = 2"), "deck.toml:5:1: 'x' is given twice, first in line 2");
}

TEST(Reader, stops_at_the_hundredth_number_out_of_range) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += fmt::format("x{} = 1e999\n", i);
  EXPECT_EQ(message_of(text), "deck.toml:101:8: 1e999 does not fit 64 bits");
}

TEST(Reader, counts_columns_after_a_byte_order_mark) {
  EXPECT_EQ(message_of("\xEF\xBB\xBFx = 1"),
            "deck.toml:1:1: key 'x' is not known (value 1); 'kzero defaults' lists every key");
  EXPECT_EQ(message_of("\xEF\xBB\xBF# \xE9"), "deck.toml:1:3: byte 0xe9 is not UTF-8");
  EXPECT_EQ(message_of("\xEF\xBB\xBF# \x01").find("deck.toml:1:3: not valid TOML"), 0U);
}

TEST(Reader, does_not_flood_the_log) {
  std::string text = "[model]\n";
  for (int i = 0; i < 150; ++i) text += fmt::format("x{} = 1\n", i);
  const std::string message = message_of(text);
  EXPECT_EQ(std::ranges::count(message, '\n'), 100);
  EXPECT_EQ(message.substr(message.rfind('\n') + 1), "deck.toml:102:1: and 50 more");
}

TEST(Reader, refuses_bytes_that_are_no_text_on_the_command_line) {
  EXPECT_EQ(
      message_of("", {"checkpoint.folder=a\nb"}),
      "command line: 'checkpoint.folder=a\\nb': key 'checkpoint.folder' must be a text without "
      "control characters, found a\\nb");
  EXPECT_EQ(message_of("", {"run.metrics=\x01"}),
            "command line: 'run.metrics=\\x01': key 'run.metrics' must be a text without control "
            "characters, found \\x01");
  EXPECT_EQ(message_of("", {"run.metrics=\xE9"}),
            "command line: 'run.metrics=\\xe9': an override must be UTF-8");
  EXPECT_NE(message_of("", {"train.steps=4\ngrid.data = 2"}), "");
}

TEST(Reader, gives_every_error_one_line) {
  const std::string text = message_of("[model]\n\"lay\\ners\" = \"\"\"a\nb\"\"\"\n");
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_EQ(text.find("deck.toml:2:1: key 'model.lay\\ners' is not known"), 0U) << text;
}

// Any bytes give a Config or an Error, and the same result twice.
TEST(Reader, survives_damaged_decks_and_repeats_itself) {
  std::vector<std::string> seeds;
  for (const auto& name : good_deck_names())
    seeds.push_back(text_of(decks() / "good" / (name + ".toml")));
  for (const auto& deck : tests::bad_decks(decks())) seeds.push_back(deck.text);
  seeds.push_back(annotated_defaults());
  const std::string alphabet = "[]{}=\".,'#\n\r\\ \t0b1eExu_-+:TZ\xc3\xb6\xef\xbb\xbf";
  std::mt19937 random(1);
  const auto pick = [&](std::size_t count) { return random() % count; };
  int errors = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = seeds[pick(seeds.size())];
    for (std::size_t change = 1 + pick(8); change > 0; --change) {
      const std::size_t at = pick(text.size() + 1);
      const std::string chunk(1 + pick(3), alphabet[pick(alphabet.size())]);
      if (pick(2) == 0) {
        text.insert(at, chunk);
      } else {
        text.replace(at, std::min(chunk.size(), text.size() - at), chunk);
      }
    }
    const std::string first = message_of(text);
    EXPECT_EQ(first, message_of(text)) << text;
    errors += first.empty() ? 0 : 1;
  }
  EXPECT_GT(errors, 500);
}

}  // namespace
}  // namespace kzero::deck
