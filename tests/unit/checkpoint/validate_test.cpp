// Files with correct checksums and wrong numbers are refused before anything uses them. tests/fuzz
// searches for more of them.
#include "checkpoint/format/validate.hpp"
#include "base/input_file.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/checksum.hpp"
#include "storage/hdf5_file.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

constexpr Index huge = std::numeric_limits<Index>::max();

/// A [6, 4] matrix. Its halves are in one file.
Manifest good_manifest() {
  Manifest manifest = manifest_at(1, {{"wte.weight", {6, 4}}});
  const StoredShard left{.parameter = 0,
                         .runs = {{0, 2, 4, 6}},
                         .checksums = {7, 8, 9},
                         .offsets = {1000, 1048, 1096}};
  StoredShard right = left;
  right.runs[0].begin = 2;
  manifest.shard_files = {
      {.file = "shard_00000.h5", .bytes = 1144, .structure = 0, .shards = {left, right}}};
  return manifest;
}

struct Case {
  const char* what;
  std::function<void(Manifest&, std::vector<Run>&)> change;
};

const std::vector<Case>& bad_cases() {
  static const std::vector<Case> cases{
      {"its counts are impossible", [](Manifest& m, auto&) { m.step = -1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.step = huge; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.samples = -1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.tokens = -1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.skipped_steps = m.step + 1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.skipped_steps = -1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.skipped_in_row = 2; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.skipped_in_row = -1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.scale_good_steps = m.step + 1; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.loss_scale = 0; }},
      {"its counts are impossible", [](Manifest& m, auto&) { m.loss_scale = HUGE_VAL; }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[2].name = "master"; }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[1].name = ""; }},
      {"the shape of",
       [](Manifest& m, auto&) {
         m.parameters[0].shape = {huge, 2};
       }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[2].name = "master"; }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[1].name = ""; }},
      {"the shape of",
       [](Manifest& m, auto&) {
         m.parameters[0].shape = {6, -4};
       }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[2].name = "master"; }},
      {"state arrays is impossible", [](Manifest& m, auto&) { m.state_arrays[1].name = ""; }},
      {"the shape of",
       [](Manifest& m, auto&) {
         m.parameters.push_back({"b", {huge / 12}});
       }},
      {"cannot be a file of its folder",
       [](Manifest& m, auto&) { m.shard_files[0].file = "../shard.h5"; }},
      {"cannot be a file of its folder", [](Manifest& m, auto&) { m.shard_files[0].file = ".."; }},
      {"cannot be a file of its folder", [](Manifest& m, auto&) { m.shard_files[0].file = ""; }},
      {"...\", which cannot be a file of its folder",
       [](Manifest& m, auto&) { m.shard_files[0].file = std::string(1 << 20, 'a'); }},
      {"the size of", [](Manifest& m, auto&) { m.shard_files[0].bytes = -1; }},
      {"the size of",
       [](Manifest& m, auto&) {
         m.shard_files.push_back({"more.h5", huge, 0, {}});
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, 2, 4, huge}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, huge, 4, 6}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, 0, 4, huge}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, 2, 4, 0}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{-2, 2, 4, 6}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{20, 2, -4, 6}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, 2, 1, 6}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{3, 2, 4, 6}};
       }},
      {"overlap, or reach beyond",
       [](Manifest&, auto& runs) {
         runs = {{0, 2, 2, 2}, {3, 1, 1, 1}};
       }},
      {"is outside of the", [](Manifest& m, auto&) { m.shard_files[0].shards[0].offsets[1] = -4; }},
      {"is outside of the",
       [](Manifest& m, auto&) { m.shard_files[0].shards[0].offsets[2] = 1097; }},
      {"is outside of the",
       [](Manifest& m, auto&) { m.shard_files[0].shards[0].offsets[0] = huge; }},
      {"is outside of the", [](Manifest& m, auto&) { m.shard_files[0].bytes = 40; }},
      {"holds 12 elements of wte.weight, which has 24",
       [](Manifest& m, auto&) { m.shard_files[0].shards.pop_back(); }},
      {"holds 36 elements of wte.weight, which has 24",
       [](Manifest& m, auto&) {
         m.shard_files.push_back(m.shard_files[0]), m.shard_files[1].shards.pop_back();
       }},
      {"its grid is impossible", [](Manifest& m, auto&) { m.data_ranks = 0; }},
      {"its grid is impossible", [](Manifest& m, auto&) { m.tensor_ranks = huge; }},
      {"its grid is impossible", [](Manifest& m, auto&) { m.stage = 4; }},
      {"its model.layers is not", [](Manifest& m, auto&) { m.model.layers = 0; }},
      {"its model is impossible: model.hidden must be a multiple of model.heads",
       [](Manifest& m, auto&) { m.model.hidden = 47; }},
      {"its lora.rank is 9223372036854775807, not",
       [](Manifest& m, auto&) { m.adapters = {{.rank = huge, .targets = {"c_fc"}}}; }},
      {"its adapters have the rank 0",
       [](Manifest& m, auto&) { m.adapters = {{.targets = {"c_fc"}}}; }},
      {"its lora.alpha is inf",
       [](Manifest& m, auto&) {
         m.adapters = {{.rank = 2, .alpha = HUGE_VAL, .targets = {"c_fc"}}};
       }},
      {"its adapters are for the layers q_proj",
       [](Manifest& m, auto&) { m.adapters = {{.rank = 2, .targets = {"q_proj"}}}; }},
      {"its adapters are for the layers c_fc, c_attn",
       [](Manifest& m, auto&) {
         m.adapters = {{.rank = 2, .targets = {"c_fc", "c_attn"}}};
       }},
      {"its adapters are for the layers c_fc, c_fc", [](Manifest& m, auto&) {
         m.adapters = {{.rank = 2, .targets = {"c_fc", "c_fc"}}};
       }}};
  return cases;
}

class ValidateTest : public CheckpointTest {
 protected:
  /// The error message for a manifest of this rank only, as a file with the correct checksum.
  std::string refusal(const Manifest& manifest) const {
    return error_of(ExitCode::files, [&] { write_manifest(own_folder(), manifest); });
  }
  fs::path own_folder() const {
    const fs::path own = folder / std::to_string(world.rank());
    fs::create_directories(own);
    return own;
  }
};

TEST_F(ValidateTest, NumbersThatCannotBeTrueAreNamed) {
  write_manifest(own_folder(), good_manifest());
  for (const Case& c : bad_cases()) {
    Manifest manifest = good_manifest();
    c.change(manifest, manifest.shard_files[0].shards[0].runs);
    const std::string text = refusal(manifest);
    EXPECT_TRUE(contains(text, c.what)) << c.what << " (wanted); found " << text;
  }
}

/// Replaces text in a manifest file's bytes by text of the same length and corrects the checksum.
std::string with_text(std::string bytes, const std::string& from, const std::string& to) {
  constexpr std::size_t header_bytes = 512;
  for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; ++at)
    bytes.replace(at, from.size(), to);
  const auto rest = std::as_bytes(std::span(bytes).subspan(header_bytes));
  std::string header = fmt::format("kzero checkpoint manifest\nformat {}\nbytes {}\nxxh3_64 {}\n",
                                   format_version, bytes.size(), format_checksum(checksum(rest)));
  header.resize(header_bytes, '\0');
  return bytes.replace(0, header_bytes, header);
}

// State that a later program may save for an optimizer is not mistaken for fp32 values of each
// element.
TEST_F(ValidateTest, StateArraysOfAnUnknownKindAreRefused) {
  write_manifest(own_folder(), good_manifest());
  const std::string bytes = load_file(own_folder() / manifest_name);
  EXPECT_EQ(parse_manifest(with_text(bytes, "none", "none"), "same").state_arrays, three_arrays());
  for (const auto& [from, to, table] : {std::array{"float32", "float16", "/state_arrays/type"},
                                        {"element", "columns", "/state_arrays/extent"}}) {
    const std::string changed = with_text(bytes, from, to);
    const std::string text = error_of(ExitCode::files, [&] { parse_manifest(changed, "other"); });
    EXPECT_TRUE(contains(text, "state arrays that this program does not know")) << text;
    EXPECT_TRUE(contains(text, table)) << text;
  }
}

TEST_F(ValidateTest, ExtentsThatTheFileCannotHoldTakeNoMemory) {
  const auto path = own_folder() / "huge.h5";
  const hsize_t extent = hsize_t{1} << 50;
  {
    const storage::Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                                   H5Fclose);
    const storage::Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
    const storage::Hdf5Handle values(H5Dcreate2(file.id(), "values", H5T_NATIVE_INT64, space.id(),
                                                H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                     H5Dclose);
    ASSERT_GE(values.id(), 0);
  }
  const storage::Hdf5File file = storage::Hdf5File::open(path);
  const std::string text = error_of(ExitCode::files, [&] { file.read<Index>("values"); });
  EXPECT_TRUE(contains(text, "it names 1125899906842624 values")) << text;
}

}  // namespace

}  // namespace kzero::checkpoint
