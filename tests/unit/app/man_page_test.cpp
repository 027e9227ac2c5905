#include "app/man_page.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace kzero::app {
namespace {

/// A program with one of everything that a command may have, including features that kzero does not
/// use.
struct Example {
  CLI::App cli{"Does things.", "kzero"};
  int count = 3;
  bool quick = false;
  std::string file, kind;
  std::vector<std::string> words;

  Example() {
    CLI::App* command = cli.add_subcommand("work", "do work");
    command->add_option("file", file, "what to read")->required();
    command->add_option("words", words, ".what to say");
    auto* number = command->add_option("-n,--count", count, "how often")->capture_default_str();
    number->check(CLI::Range(1, 9));
    command->add_option("--kind", kind, "a kind; it's one")
        ->check(CLI::IsMember({"big", "small"}))
        ->needs(number);
    command->add_flag("--quick", quick, "no \\ waiting")->excludes(number);
    command->add_option("--secret", file, "not shown")->group("");
    cli.add_subcommand("hidden", "not shown")->group("");
  }
};

TEST(CommandTable, HasWhatTheParserHas) {
  const Example example;
  const std::vector<Command> commands = command_table(example.cli);
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0].name, "kzero");
  const Command& work = commands[1];
  ASSERT_EQ(work.positionals.size(), 2U);
  EXPECT_TRUE(work.positionals[0].is_required && !work.positionals[0].is_repeated);
  EXPECT_TRUE(!work.positionals[1].is_required && work.positionals[1].is_repeated);
  ASSERT_EQ(work.options.size(), 4U);  // including --help
  const Argument& count = work.options[1];
  EXPECT_EQ(count.names, (std::vector<std::string>{"--count", "-n"}));
  EXPECT_EQ(count.fallback, "3");
  EXPECT_EQ(count.excludes, std::vector<std::string>{"--quick"});
  EXPECT_EQ(work.options[2].choices, (std::vector<std::string>{"big", "small"}));
  EXPECT_EQ(work.options[2].needs, std::vector<std::string>{"--count"});
  EXPECT_FALSE(work.options[3].takes_value());
}

TEST(ManPage, ShowsArgumentsLimitsAndDefaults) {
  const Example example;
  const std::string page = man_page(command_table(example.cli));
  for (const char* text :
       {".SS \"kzero work\"\n", "\\fIfile\\fR [\\fIwords\\fR ...]\n",
        "\\fB\\-\\-count\\fR, \\fB\\-n\\fR \\fIINT\\fR\nHow often. Allowed: from 1 to 9. Default: "
        "3.",
        "\\fB\\-\\-kind\\fR \\fBbig\\fR | \\fBsmall\\fR\nA kind; it\\(aqs one. Needs "
        "\\-\\-count.\n",
        "No \\e waiting. Not with \\-\\-count.\n", "\n\\&.what to say.\n"})
    EXPECT_NE(page.find(text), std::string::npos) << text << "\n" << page;
  EXPECT_EQ(page.find("secret"), std::string::npos);
  EXPECT_EQ(page.find("hidden"), std::string::npos);
}

}  // namespace
}  // namespace kzero::app
