#include "convert/shards.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "convert/model_file.hpp"

namespace kzero::convert {

namespace {

constexpr const char* index_writer_key = "writer";
constexpr const char* index_writer = "kzero";

Index bytes_of_tensor(const std::vector<Index>& shape, Dtype dtype) {
  Index bytes = bytes_of(dtype);
  for (const Index extent : shape) bytes *= extent;
  return bytes;
}

}  // namespace

std::vector<WeightShard> divide(const SafetensorsWriter::Shapes& tensors, Dtype dtype, Index limit,
                                const std::string& single) {
  std::vector<WeightShard> shards(1);
  Index filled = 0;
  for (const auto& tensor : tensors) {
    const Index bytes = bytes_of_tensor(tensor.second, dtype);
    if (filled > 0 && bytes > limit - filled) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(tensor);
    filled += bytes;
  }
  shards.front().name = single;
  if (shards.size() == 1) return shards;
  for (std::size_t i = 0; i < shards.size(); ++i)
    shards[i].name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  return shards;
}

std::string index_text(const std::vector<WeightShard>& shards, Dtype dtype) {
  Index bytes = 0;
  nlohmann::ordered_json map;
  for (const WeightShard& shard : shards) {
    for (const auto& [name, shape] : shard.tensors) {
      map[name] = shard.name;
      bytes += bytes_of_tensor(shape, dtype);
    }
  }
  const nlohmann::ordered_json index{
      {"metadata", {{"total_size", bytes}, {index_writer_key, index_writer}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

bool is_shard_name(const std::string& name) {
  constexpr std::string_view form = "model-#####-of-#####.safetensors";
  const auto fits = [](char c, char wanted) {
    return wanted == '#' ? c >= '0' && c <= '9' : c == wanted;
  };
  return name.size() == form.size() && std::ranges::equal(name, form, fits);
}

bool is_index_of_kzero(const std::filesystem::path& path) {
  constexpr Index max_bytes = Index{16} << 20;
  try {
    const auto index = read_json_object(path, max_bytes);
    const auto metadata = index.find("metadata");
    return metadata != index.end() && metadata->is_object() &&
           metadata->value(index_writer_key, nlohmann::json()) == index_writer;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kzero::convert
