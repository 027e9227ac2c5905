// The files that a model brought: kept in the folder of checkpoints, and checked before use.
#include "checkpoint/folder/origin.hpp"

#include "base/input_file.hpp"
#include "support/stored_file.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using tests::store;

class OriginTest : public CheckpointTest {
 protected:
  /// Each rank has its own folder of checkpoints.
  OriginTest() : mine(folder / fmt::format("rank_{}", world.rank())), kept(mine / origin_name) {
    world.barrier();
  }

  std::string error() const {
    return error_of(ExitCode::files, [&] { read_origin(kept); });
  }

  const fs::path mine, kept;
  const Origin whole{.files = {{"additional_chat_templates/tool_use.jinja", "{{ x }}"},
                               {"config.json", "{}"},
                               {"tokenizer.json", std::string(100'000, 't')},
                               {"tokenizer_config.json", ""}}};
};

TEST_F(OriginTest, IsReadAsItWasWritten) {
  EXPECT_EQ(origin_folder(mine / "step_00000001"), "");
  update_origin(mine, {});
  EXPECT_FALSE(fs::exists(kept));
  update_origin(mine, whole);
  EXPECT_EQ(origin_folder(mine / "step_00000001"), kept);
  EXPECT_EQ(origin_folder(mine / "step_00000001" / ""), kept);
  EXPECT_EQ(read_origin(kept).files, whole.files);
  EXPECT_EQ(*read_origin(kept).find("config.json"), "{}");
  EXPECT_EQ(read_origin(kept).find("merges.txt"), nullptr);
}

TEST_F(OriginTest, WithinACheckpointItComesFirst) {
  update_origin(mine, whole);
  update_origin(mine / "step_00000001", {.files = {{"config.json", "[]"}}});
  EXPECT_EQ(origin_folder(mine / "step_00000001"), mine / "step_00000001" / origin_name);
}

TEST_F(OriginTest, WhatARunDoesNotBringStays) {
  update_origin(mine, whole);
  update_origin(mine, {.files = {{"config.json", "[]"}, {"generation_config.json", "{}"}}});
  EXPECT_EQ(*read_origin(kept).find("config.json"), "[]");
  EXPECT_EQ(read_origin(kept).files.size(), 5U);
  update_origin(mine, {.files = {{"tokenizer.json", "new"}}});
  EXPECT_EQ(*read_origin(kept).find("config.json"), "[]");
  EXPECT_EQ(*read_origin(kept).find("tokenizer.json"), "new");
  EXPECT_EQ(read_origin(kept).find("tokenizer_config.json"), nullptr);
  EXPECT_FALSE(fs::exists(kept / "tokenizer_config.json"));
  const auto time = fs::last_write_time(kept / origin_list_name);
  update_origin(mine, {.files = {{"tokenizer.json", "new"}}});
  EXPECT_EQ(fs::last_write_time(kept / origin_list_name), time);
}

TEST_F(OriginTest, DamageIsNamedAndMendedByTheNextRun) {
  update_origin(mine, whole);
  store(kept / "tokenizer.json", std::string(100'000, 'u'));
  EXPECT_TRUE(contains(error(), "tokenizer.json: is not the file that files.txt lists")) << error();
  update_origin(mine, whole);
  EXPECT_EQ(read_origin(kept).files, whole.files);
  fs::remove(kept / "config.json");
  EXPECT_TRUE(contains(error(), "config.json")) << error();
  update_origin(mine, whole);
  store(kept / origin_list_name, "kzero origin 1\n");  // the first write was interrupted
  EXPECT_EQ(origin_folder(mine / "step_00000001"), "");
  update_origin(mine, whole);
  EXPECT_EQ(read_origin(kept).files, whole.files);
}

TEST_F(OriginTest, FilesThatDoNotDescribeAnotherModelTakeNothingAway) {
  update_origin(mine, whole);
  // What prepare.py writes next to the data, and a folder with the same tokenizer and fewer files.
  update_origin(mine, {.files = {{"generation_config.json", "{}"},
                                 {"tokenizer.json", std::string(100'000, 't')}}});
  const Origin now = read_origin(kept);
  EXPECT_EQ(now.files.size(), 5U);
  for (const OriginFile& file : whole.files) EXPECT_NE(now.find(file.name), nullptr) << file.name;
}

TEST_F(OriginTest, AnInterruptedUpdateLosesNothing) {
  update_origin(mine, whole);
  store(kept / "config.json", "[]");  // written, but not yet in the list
  update_origin(mine, {.files = {{"config.json", "[]"}}});
  EXPECT_EQ(read_origin(kept).files.size(), whole.files.size());
  EXPECT_EQ(*read_origin(kept).find("config.json"), "[]");
}

TEST_F(OriginTest, OfTheFolderStaysIfItHasPrecedence) {
  update_origin(mine, whole);
  update_origin(mine, {.files = {{"config.json", "[]"}, {"merges.txt", "a b"}}},
                Precedence::of_folder);
  EXPECT_EQ(*read_origin(kept).find("config.json"), "{}");
  EXPECT_NE(read_origin(kept).find("merges.txt"), nullptr);
}

TEST_F(OriginTest, IsFoundFromWithinACheckpoint) {
  update_origin(mine, whole);
  fs::create_directories(mine / "step_00000001");
  EXPECT_EQ(origin_folder(mine / "step_00000001" / "."), kept);
  EXPECT_EQ(origin_folder(mine / "step_00000001" / ".." / "step_00000001"), kept);
}

TEST_F(OriginTest, AFolderOfSomebodyElseIsRefused) {
  fs::create_directories(kept);
  store(kept / "config.json", "mine");
  const auto refusal = [&] {
    return error_of(ExitCode::files, [&] { update_origin(mine, whole); });
  };
  EXPECT_TRUE(contains(refusal(), "origin: was not made by kzero")) << refusal();
  EXPECT_EQ(load_file(kept / "config.json", 100), "mine");
  fs::remove_all(kept);
  fs::create_directories(mine / "elsewhere");
  fs::create_directory_symlink("elsewhere", kept);
  EXPECT_TRUE(contains(refusal(), "origin: is a link")) << refusal();
  EXPECT_TRUE(fs::is_empty(mine / "elsewhere"));
}

TEST_F(OriginTest, AForeignListLeadsNowhere) {
  update_origin(mine, whole);
  store(mine / "secret", "s");
  const auto listed = [&](const std::string& line) {
    store(kept / origin_list_name, "kzero origin 1\n" + line + "\n");
    return error();
  };
  const std::string digest(16, '0');
  for (const char* name : {"../secret", "/etc/passwd", "a/b", ".hidden", "files.txt",
                           "additional_chat_templates/../../secret", "a\x1b[2J"}) {
    const std::string text = listed(fmt::format("{} 1 {}", digest, name));
    EXPECT_TRUE(contains(text, "is not a name that a file of a model's origin may have")) << text;
    EXPECT_FALSE(contains(text, "\x1b"));
  }
  EXPECT_TRUE(
      contains(listed(digest + " 99999999999 big"), "a file of a model's origin has at most"));
  EXPECT_TRUE(contains(listed(digest + " -1 small"), "has -1 bytes"));
  EXPECT_TRUE(contains(listed("tokenizer.json"), "is not a checksum, a size and a name"));
  fs::remove(kept / "config.json");
  fs::create_symlink("../secret", kept / "config.json");
  EXPECT_TRUE(contains(listed(digest + " 1 config.json"), "config.json: is a link"));
  store(kept / origin_list_name, "something else\n");
  EXPECT_TRUE(contains(error(), "begins with something else, not with \"kzero origin 1\""));
  const std::string large = error_of(ExitCode::files, [&] {
    update_origin(mine,
                  {.files = {{"tokenizer.json", std::string(max_origin_file_bytes + 1, 'x')}}});
  });
  EXPECT_TRUE(contains(large, "tokenizer.json: has 67108865 bytes")) << large;
}

}  // namespace

}  // namespace kzero::checkpoint
