#include "checkpoint/format/manifest.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "checkpoint/format/records.hpp"
#include "checkpoint/format/validate.hpp"
#include "storage/files.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

constexpr std::size_t header_bytes = 512;  // the smallest user block
constexpr std::size_t run_words = 4;
constexpr const char* state_type = "float32";
// One value per element of every parameter, or only of those that store no hidden matrices.
constexpr const char* per_element = "element";
constexpr const char* per_element_but_matrices = "element, not of hidden matrices";

/// Calls f(object, attribute, value) for every scalar of a manifest. Reading and writing share this
/// list.
template <class M, class F>
void for_each_attribute(M& m, F&& f) {
  f("/", "kzero_version", m.kzero_version);
  f("/", "git_hash", m.git_hash);
  f("/", "data_ranks", m.data_ranks);
  f("/", "tensor_ranks", m.tensor_ranks);
  f("/", "stage", m.stage);
  f("/", "precision", m.precision);
  f("/", "step", m.step);
  f("/", "tokens", m.tokens);
  f("/", "samples", m.samples);
  f("/", "loss_scale", m.loss_scale);
  f("/", "scale_good_steps", m.scale_good_steps);
  f("/", "skipped_steps", m.skipped_steps);
  f("/", "skipped_in_row", m.skipped_in_row);
  f("/", "data_digest", m.data_digest);
  f("/", "parameter_hash", m.parameter_hash);
}

template <class T>
void put(storage::Hdf5File& file, const std::string& dataset, const std::vector<T>& values,
         Index columns = 1) {
  const auto rows = static_cast<Index>(values.size()) / columns;
  file.write(dataset, std::span<const T>(values),
             columns == 1 ? std::vector<Index>{rows} : std::vector<Index>{rows, columns});
}

void put_parameters(storage::Hdf5File& file, const std::vector<Parameter>& parameters) {
  std::size_t dims = 1;
  for (const Parameter& p : parameters) dims = std::max(dims, p.shape.size());
  std::vector<std::string> names;
  std::vector<Index> shapes;  // rows of equal length, with zeros after the last extent
  for (const Parameter& p : parameters) {
    names.push_back(p.name);
    shapes.insert(shapes.end(), p.shape.begin(), p.shape.end());
    shapes.insert(shapes.end(), dims - p.shape.size(), 0);
  }
  file.create_group("/parameters");
  put(file, "/parameters/name", names);
  file.write("/parameters/shape", std::span<const Index>(shapes),
             {static_cast<Index>(names.size()), static_cast<Index>(dims)});
}

std::vector<Parameter> get_parameters(const storage::Hdf5File& file,
                                      const std::filesystem::path& path) {
  const auto names = file.read<std::string>("/parameters/name");
  const auto shapes = file.read<Index>("/parameters/shape");
  std::vector<Parameter> parameters;
  const std::size_t dims = names.empty() ? 0 : shapes.size() / names.size();
  KZERO_REQUIRE(shapes.size() == names.size() * dims, ExitCode::files,
                "{}: its tables of parameters do not fit together", path.string());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto row = shapes.begin() + static_cast<std::ptrdiff_t>(i * dims);
    parameters.push_back({names[i], {row, std::find(row, row + dims, 0)}});
  }
  return parameters;
}

/// Stores one row per shard, in the order of the shard files, and the concatenated runs of all
/// shards.
struct ShardTable {
  std::vector<Index> shard_file, parameter, run_count, offset, runs;
  std::vector<std::uint64_t> checksum;
};

void put_state_arrays(storage::Hdf5File& file, const param::StateArrays& arrays) {
  std::vector<std::string> names, extents;
  for (const param::StateArray& array : arrays) {
    names.push_back(array.name);
    extents.emplace_back(array.extent == param::Extent::all ? per_element
                                                            : per_element_but_matrices);
  }
  const std::vector<std::string> types(names.size(), state_type);
  file.create_group("/state_arrays");
  put(file, "/state_arrays/name", names);
  put(file, "/state_arrays/type", types);
  put(file, "/state_arrays/extent", extents);
}

param::StateArrays get_state_arrays(const storage::Hdf5File& file,
                                    const std::filesystem::path& path) {
  const auto names = file.read<std::string>("/state_arrays/name"),
             types = file.read<std::string>("/state_arrays/type"),
             extents = file.read<std::string>("/state_arrays/extent");
  const auto require = [&](bool known, const char* table, const std::string& what) {
    KZERO_REQUIRE(known, ExitCode::files,
                  "{}: holds state arrays that this program does not know ({} is not {} for all)",
                  path.string(), table, what);
  };
  require(types == std::vector<std::string>(names.size(), state_type), "/state_arrays/type",
          state_type);
  const auto is_known = [](const std::string& extent) {
    return extent == per_element || extent == per_element_but_matrices;
  };
  require(extents.size() == names.size() && std::ranges::all_of(extents, is_known),
          "/state_arrays/extent",
          fmt::format("\"{}\" or \"{}\"", per_element, per_element_but_matrices));
  param::StateArrays arrays;
  for (std::size_t i = 0; i < names.size(); ++i) {
    arrays.push_back({names[i], extents[i] == per_element ? param::Extent::all
                                                          : param::Extent::all_but_matrices});
  }
  return arrays;
}

constexpr const char* axis_names[] = {"row", "column"};  // by param::Axis

void put_reduced_state(storage::Hdf5File& file, const Manifest& m) {
  if (m.reduced_arrays.empty()) return;
  std::vector<std::string> names, axes;
  for (const param::ReducedArray& array : m.reduced_arrays) {
    names.push_back(array.name);
    axes.emplace_back(axis_names[static_cast<std::size_t>(array.axis)]);
  }
  file.set_attribute("/", "reduced_arrays", static_cast<Index>(names.size()));
  file.create_group("/reduced_state");
  put(file, "/reduced_state/name", names);
  put(file, "/reduced_state/axis", axes);
  put(file, "/reduced_state/values", m.reduced_state);
}

void get_reduced_state(const storage::Hdf5File& file, const std::filesystem::path& path,
                       Manifest& m) {
  if (!file.has_attribute("/", "reduced_arrays")) return;
  const auto names = file.read<std::string>("/reduced_state/name"),
             axes = file.read<std::string>("/reduced_state/axis");
  KZERO_REQUIRE(axes.size() == names.size(), ExitCode::files,
                "{}: names {} arrays of rows or columns, and the axes of {}", path.string(),
                names.size(), axes.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto axis = std::ranges::find(axis_names, axes[i]);
    KZERO_REQUIRE(axis != std::end(axis_names), ExitCode::files,
                  "{}: its array {} has one element for each \"{}\", but only rows and columns are "
                  "known",
                  path.string(), names[i], axes[i]);
    m.reduced_arrays.push_back({names[i], static_cast<param::Axis>(axis - axis_names)});
  }
  m.reduced_state = file.read<float>("/reduced_state/values");
}

void put_shards(storage::Hdf5File& file, const std::vector<ShardFile>& shard_files, Index arrays) {
  std::vector<std::string> names;
  std::vector<Index> bytes;
  std::vector<std::uint64_t> structures;
  ShardTable table;
  for (const ShardFile& shard_file : shard_files) {
    for (const StoredShard& shard : shard_file.shards) {
      table.shard_file.push_back(static_cast<Index>(names.size()));
      table.parameter.push_back(shard.parameter);
      table.run_count.push_back(static_cast<Index>(shard.runs.size()));
      table.offset.insert(table.offset.end(), shard.offsets.begin(), shard.offsets.end());
      table.checksum.insert(table.checksum.end(), shard.checksums.begin(), shard.checksums.end());
      for (const Run& r : shard.runs)
        table.runs.insert(table.runs.end(), {r.begin, r.count, r.stride, r.repeat});
    }
    names.push_back(shard_file.file);
    bytes.push_back(shard_file.bytes);
    structures.push_back(shard_file.structure);
  }
  file.create_group("/shards");
  put(file, "/shards/file", names);
  put(file, "/shards/bytes", bytes);
  put(file, "/shards/xxh3_64", structures);
  file.create_group("/state_shards");
  put(file, "/state_shards/shard_file", table.shard_file);
  put(file, "/state_shards/parameter", table.parameter);
  put(file, "/state_shards/run_count", table.run_count);
  put(file, "/state_shards/xxh3_64", table.checksum, arrays);
  put(file, "/state_shards/offset", table.offset, arrays);
  put(file, "/state_shards/runs", table.runs, run_words);
}

bool consistent(const ShardTable& table, std::size_t shard_files, std::size_t parameters,
                std::size_t arrays) {
  const std::size_t rows = table.shard_file.size();
  std::size_t runs = 0;
  if (table.parameter.size() != rows || table.run_count.size() != rows) return false;
  if (table.checksum.size() != rows * arrays || table.offset.size() != rows * arrays) return false;
  for (std::size_t i = 0; i < rows; ++i) {
    if (std::cmp_less(table.shard_file[i], 0) ||
        std::cmp_greater_equal(table.shard_file[i], shard_files))
      return false;
    if (std::cmp_less(table.parameter[i], 0) ||
        std::cmp_greater_equal(table.parameter[i], parameters)) {
      return false;
    }
    if (std::cmp_less(table.run_count[i], 0) ||
        std::cmp_greater(table.run_count[i], table.runs.size() / run_words - runs)) {
      return false;
    }
    runs += static_cast<std::size_t>(table.run_count[i]);
  }
  return table.runs.size() == run_words * runs;
}

std::vector<ShardFile> get_shards(const storage::Hdf5File& file, const Manifest& manifest,
                                  const std::filesystem::path& path) {
  const auto names = file.read<std::string>("/shards/file");
  const auto bytes = file.read<Index>("/shards/bytes");
  const auto structures = file.read<std::uint64_t>("/shards/xxh3_64");
  const std::size_t arrays = manifest.state_arrays.size();
  ShardTable table{.shard_file = file.read<Index>("/state_shards/shard_file"),
                   .parameter = file.read<Index>("/state_shards/parameter"),
                   .run_count = file.read<Index>("/state_shards/run_count"),
                   .offset = file.read<Index>("/state_shards/offset"),
                   .runs = file.read<Index>("/state_shards/runs"),
                   .checksum = file.read<std::uint64_t>("/state_shards/xxh3_64")};
  KZERO_REQUIRE(bytes.size() == names.size() && structures.size() == names.size() &&
                    consistent(table, names.size(), manifest.parameters.size(), arrays),
                ExitCode::files, "{}: its tables of shard files and shards do not fit together",
                path.string());
  std::vector<ShardFile> shard_files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    shard_files.push_back({names[i], bytes[i], structures[i], {}});
  }
  auto word = table.runs.begin();
  for (std::size_t i = 0; i < table.shard_file.size(); ++i) {
    StoredShard shard{.parameter = table.parameter[i]};
    for (Index r = 0; r < table.run_count[i]; ++r, word += run_words) {
      shard.runs.push_back({word[0], word[1], word[2], word[3]});
    }
    const auto checksum = table.checksum.begin() + static_cast<std::ptrdiff_t>(i * arrays);
    const auto offset = table.offset.begin() + static_cast<std::ptrdiff_t>(i * arrays);
    shard.checksums.assign(checksum, checksum + static_cast<std::ptrdiff_t>(arrays));
    shard.offsets.assign(offset, offset + static_cast<std::ptrdiff_t>(arrays));
    shard_files[table.shard_file[i]].shards.push_back(std::move(shard));
  }
  return shard_files;
}

std::string header_of(std::uint64_t digest, std::size_t bytes) {
  std::string header = fmt::format("kzero checkpoint manifest\nformat {}\nbytes {}\nxxh3_64 {}\n",
                                   format_version, bytes, format_checksum(digest));
  header.resize(header_bytes, '\0');
  return header;
}

std::uint64_t digest_after_header(const std::string& bytes) {
  return checksum(std::as_bytes(std::span(bytes).subspan(header_bytes)));
}

void require_good_header(const std::string& bytes, const std::filesystem::path& path) {
  Index version = 0;
  const std::string header = bytes.substr(0, header_bytes);
  const bool known =
      header.size() == header_bytes &&
      std::sscanf(header.c_str(), "kzero checkpoint manifest\nformat %" SCNd64, &version) == 1;
  KZERO_REQUIRE(known, ExitCode::files, "{}: is not the manifest of a checkpoint, or is damaged",
                path.string());
  KZERO_REQUIRE(version == format_version, ExitCode::files,
                "{}: is of format version {}; this program reads version {}", path.string(),
                version, format_version);
  KZERO_REQUIRE(header == header_of(digest_after_header(bytes), bytes.size()), ExitCode::files,
                "{}: is damaged: its {} bytes do not fit their checksum", path.string(),
                bytes.size());
}

}  // namespace

std::vector<Parameter> parameters_of(const param::Table& table) {
  std::vector<Parameter> parameters;
  for (const auto& unit : table) {
    for (const auto& spec : unit.params) parameters.push_back({spec.name, spec.shape});
  }
  return parameters;
}

void require_parameters(const Manifest& manifest, const ParametersOf& parameters_of_model,
                        const std::filesystem::path& path) {
  const std::vector<Parameter> wanted = parameters_of_model(manifest), &held = manifest.parameters;
  const auto describe = [](const std::vector<Parameter>& list, std::size_t i) {
    if (i >= list.size()) return std::string("nothing more");
    return fmt::format("{} [{}]", printable_start(list[i].name), fmt::join(list[i].shape, ", "));
  };
  const auto [found, right] = std::ranges::mismatch(held, wanted);
  const auto i = static_cast<std::size_t>(found - held.begin());
  KZERO_REQUIRE(i == held.size() && i == wanted.size(), ExitCode::files,
                "{}: its parameter {} is {}, but the model{} that it records has {}; it is damaged "
                "or forged",
                path.string(), i, describe(held, i),
                manifest.adapters
                    ? fmt::format(" with adapters of rank {}", manifest.adapters->lora.rank)
                    : "",
                describe(wanted, i));
}

std::vector<std::vector<LocatedShard>> shards_by_parameter(const Manifest& manifest) {
  std::vector<std::vector<LocatedShard>> held(manifest.parameters.size());
  for (std::size_t s = 0; s < manifest.shard_files.size(); ++s) {
    for (const StoredShard& shard : manifest.shard_files[s].shards)
      held[shard.parameter].push_back({static_cast<Index>(s), &shard});
  }
  return held;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  const auto path = folder / manifest_name;
  storage::Hdf5File structure = storage::Hdf5File::create(path, header_bytes);
  for_each_attribute(manifest, [&](const char* object, const char* name, const auto& value) {
    structure.set_attribute(object, name, value);
  });
  put_model(structure, manifest.model);
  put_adapters(structure, manifest.adapters);
  put_loss(structure, manifest.loss);
  put_norms(structure, manifest.norms);
  structure.set_attribute("/", "format_version", format_version);
  structure.set_attribute("/", "arithmetic", manifest.arithmetic);
  structure.set_attribute("/", "optimizer", manifest.optimizer);
  structure.set_attribute("/", "optimizer_start", manifest.optimizer_start);
  structure.write("/deck", std::span<const std::string>(&manifest.deck, 1), {});
  put_parameters(structure, manifest.parameters);
  put_state_arrays(structure, manifest.state_arrays);
  put_reduced_state(structure, manifest);
  put_shards(structure, manifest.shard_files, static_cast<Index>(manifest.state_arrays.size()));
  storage::OutputFile file(path);
  structure.write_to(file);

  // The header is written last. Until then the file does not count as a manifest.
  const std::string bytes = load_file(path, max_manifest_bytes);
  const std::string header = header_of(digest_after_header(bytes), bytes.size());
  file.write(0, std::as_bytes(std::span(header)));
  file.sync();
  file.close();
  read_manifest(folder);
}

Manifest parse_manifest(const std::string& bytes, const std::filesystem::path& path) {
  require_good_header(bytes, path);
  Manifest manifest;
  const storage::Hdf5File file = storage::Hdf5File::open_image(bytes, path);
  for_each_attribute(manifest, [&](const char* object, const char* name, auto& value) {
    value = file.attribute<std::remove_reference_t<decltype(value)>>(object, name);
  });
  manifest.arithmetic = file.attribute<std::string>("/", "arithmetic");
  manifest.optimizer = file.attribute<std::string>("/", "optimizer");
  manifest.optimizer_start = file.attribute<Index>("/", "optimizer_start");
  const auto deck = file.read<std::string>("/deck");
  KZERO_REQUIRE(deck.size() == 1, ExitCode::files, "{}: holds {} decks, not one", path.string(),
                deck.size());
  manifest.deck = deck.front();
  manifest.model = get_model(file, path);
  manifest.adapters = get_adapters(file, manifest.model, path);
  manifest.loss = get_loss(file, manifest.step, path);
  manifest.norms = get_norms(file, manifest.skipped_steps, manifest.skipped_in_row, path);
  manifest.parameters = get_parameters(file, path);
  manifest.state_arrays = get_state_arrays(file, path);
  get_reduced_state(file, path, manifest);
  manifest.shard_files = get_shards(file, manifest, path);
  validate(manifest, path);
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const auto path = folder / manifest_name;
  return parse_manifest(load_file(path, max_manifest_bytes), path);
}

}  // namespace kzero::checkpoint
