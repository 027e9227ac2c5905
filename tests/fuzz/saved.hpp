// A tiny checkpoint on disk, which the checkpoint's targets and the seeds start from.
#pragma once

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/input_file.hpp"
#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/shard_file.hpp"
#include "fuzz.hpp"
#include "storage/files.hpp"
#include "storage/hdf5_file.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::fuzz {

/// A shard whose three arrays have the same values.
inline checkpoint::StateShard shard_of(const std::string& parameter,
                                       std::vector<checkpoint::Range> ranges,
                                       std::span<float> values) {
  return {parameter,
          std::move(ranges),
          {{"master", values}, {"first_moment", values}, {"second_moment", values}}};
}

/// Two shard_files, cut by columns and by rows, so that shards have several runs, parameters
/// several shards.
class SavedCheckpoint {
 public:
  SavedCheckpoint() {
    manifest_.deck = "[model]\n";
    manifest_.precision = "fp32";
    manifest_.state_arrays = {{"master"}, {"first_moment"}, {"second_moment"}};
    manifest_.parameters = {{"wte.weight", {6, 4}}, {"ln_f.bias", {5}}};
    add_shard({{0, 2}, {4, 2}, {8, 2}, {12, 2}, {16, 2}, {20, 2}}, {{0, 3}});
    add_shard({{2, 2}, {6, 2}, {10, 2}, {14, 2}, {18, 2}, {22, 2}}, {{3, 2}});
    checkpoint::write_manifest(path(), manifest_);
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  const checkpoint::Manifest& manifest() const { return manifest_; }

 private:
  void add_shard(const std::vector<checkpoint::Range>& wte,
                 const std::vector<checkpoint::Range>& bias) {
    std::vector<float> values(12);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const std::span<float> all(values);
    const std::span<float> few = all.first(checkpoint::elements_of(bias));
    const std::vector<checkpoint::StateShard> shards{shard_of("wte.weight", wte, all),
                                                     shard_of("ln_f.bias", bias, few)};
    const auto name = checkpoint::shard_file_name(static_cast<Index>(manifest_.shard_files.size()));
    auto part = checkpoint::write_shard_file(path(), name, manifest_, shards);
    manifest_.parameter_hash += part.parameter_hash;
    manifest_.shard_files.push_back(std::move(part.shard_file));
  }

  tests::TemporaryFolder folder_;
  checkpoint::Manifest manifest_;
};

inline constexpr std::size_t header_bytes = 512;

/// Puts the header in front that makes any bytes after it an undamaged manifest file.
inline void sign(std::string& bytes) {
  const auto digest = checksum(std::as_bytes(std::span(bytes).subspan(header_bytes)));
  std::string header =
      fmt::format("kzero checkpoint manifest\nformat {}\nbytes {}\nxxh3_64 {}\n",
                  checkpoint::format_version, bytes.size(), format_checksum(digest));
  header.resize(header_bytes, '\0');
  bytes.replace(0, header_bytes, header);
}

inline std::string manifest_bytes(const SavedCheckpoint& saved) {
  return load_file(saved.path() / checkpoint::manifest_name);
}

/// Where the numbers of a manifest lie, those that are looked at first in front.
inline std::vector<Region> tables_of(const std::string& bytes) {
  const auto file = storage::Hdf5File::open_image(bytes, "manifest");
  std::vector<Region> tables;
  for (const char* name :
       {"/state_shards/runs", "/state_shards/run_count", "/state_shards/shard_file",
        "/state_shards/offset", "/state_shards/parameter", "/parameters/shape", "/shards/bytes",
        "/shards/xxh3_64", "/state_shards/xxh3_64"}) {
    const auto values = file.read<std::uint64_t>(name);
    const Region table{file.offset_of(name),
                       static_cast<Index>(values.size() * sizeof(std::uint64_t))};
    require(std::memcmp(bytes.data() + table.offset, values.data(), table.bytes) == 0,
            "a table is where HDF5 says");
    tables.push_back(table);
  }
  return tables;
}

}  // namespace kzero::fuzz
