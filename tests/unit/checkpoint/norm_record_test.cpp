// The record of gradient norms in a manifest.
#include "checkpoint/format/records.hpp"

#include <limits>

#include "support/temporary_folder.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {
namespace {

/// A manifest of one tensor after 20 steps. 5 of them were skipped, the last 3 in a row.
Manifest with_norms(const std::optional<NormRecord>& norms) {
  Manifest manifest = manifest_at(20, {{"wte.weight", {6, 4}}}, 3);
  const StoredShard all{0, {{0, 24, 0, 1}}, {7, 8, 9}, {1000, 1096, 1192}};
  manifest.shard_files = {{"shard_00000.h5", 1288, 0, {all}}};
  manifest.norms = norms;
  return manifest;
}

TEST(NormRecords, ComeBackBitForBit) {
  const tests::TemporaryFolder folder;
  for (const NormRecord& norms :
       {NormRecord{{0.1, 1.0 / 3, 2e300, 0}, 4, 2}, NormRecord{{}, 0, 0}}) {
    write_manifest(folder.path(), with_norms(norms));
    EXPECT_EQ(read_manifest(folder.path()).norms, norms);
  }
  write_manifest(folder.path(), with_norms({}));
  EXPECT_FALSE(read_manifest(folder.path()).norms) << "without the rule";
}

TEST(NormRecords, ImpossibleOnesAreRefused) {
  const tests::TemporaryFolder folder;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const NormRecord& norms :
       {NormRecord{{1, infinity}, 1, 1}, NormRecord{{-1}, 1, 1}, NormRecord{{1}, 6, 1},
        NormRecord{{1}, 1, 2}, NormRecord{{1}, 4, 4}, NormRecord{{1}, 1, -1}}) {
    const std::string text =
        error_of(ExitCode::files, [&] { write_manifest(folder.path(), with_norms(norms)); });
    EXPECT_NE(text.find("its record of gradient norms is impossible"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace kzero::checkpoint
