#include "checkpoint/format/model_record.hpp"

#include <string>

#include "base/error.hpp"
#include "deck/architecture.hpp"
#include "deck/model_rules.hpp"

namespace kzero::checkpoint {

namespace {

/// The attribute of a key of [model]: its name, except for a key that predates RMSNorm.
std::string attribute_of(const deck::Key& key) {
  return key.path == "model.norm_eps" ? "layernorm_eps" : key.name();
}

deck::Value get_model_value(const storage::Hdf5File& file, const deck::Key& key) {
  const std::string name = attribute_of(key);
  switch (key.kind) {
    case deck::Kind::integer:
      return file.attribute<Index>("/model", name);
    case deck::Kind::real:
      return file.attribute<double>("/model", name);
    case deck::Kind::boolean:
      return file.attribute<Index>("/model", name) != 0;
    default:
      return file.attribute<std::string>("/model", name);
  }
}

}  // namespace

void put_model(storage::Hdf5File& file, const deck::Model& model) {
  file.create_group("/model");
  for (const deck::Key* key : deck::defining_keys(model.family)) {
    const deck::Value value = deck::model_value(*key, model);
    const std::string name = attribute_of(*key);
    if (const auto* number = std::get_if<Index>(&value)) {
      file.set_attribute("/model", name, *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      file.set_attribute("/model", name, *real);
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
      file.set_attribute("/model", name, Index{*boolean});
    } else {
      file.set_attribute("/model", name, std::get<std::string>(value));
    }
  }
}

deck::Model get_model(const storage::Hdf5File& file, const std::filesystem::path& path) {
  deck::Model model;
  const auto take = [&](const deck::Key& key) {
    const deck::Value value = get_model_value(file, key);
    KZERO_REQUIRE(deck::is_allowed(key, value), ExitCode::files, "{}: its {} is not {}",
                  path.string(), key.path, deck::allowed(key));
    deck::set_model_value(key, value, model);
  };
  const deck::Key& family = *deck::find_key("model.family");
  take(family);
  for (const deck::Key* key : deck::defining_keys(model.family)) {
    if (key != &family) take(*key);
  }
  const auto violations = deck::apply_model_rules(model);
  KZERO_REQUIRE(violations.empty(), ExitCode::files, "{}: its model is impossible: {}",
                path.string(), violations.front().text);
  return model;
}

}  // namespace kzero::checkpoint
