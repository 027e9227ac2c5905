// The keys of the lists of tables: [[train.phase]], [[optimizer.group]], [[data.blend]] and
// [[evaluate]].
#include <algorithm>

#include "deck/key_builders.hpp"

namespace kzero::deck {

namespace {

// If a deck has no such table, a key of a list's table reads as the default; setting the key
// creates the table.
struct BlendTables {
  using Table = BlendSource;
  static auto& of(auto& config) { return config.data.blend; }
};

struct PhaseTables {
  using Table = BatchPhase;
  static auto& of(auto& config) { return config.train.phases; }
};

struct GroupTables {
  using Table = OptimizerGroup;
  static auto& of(auto& config) { return config.optimizer.groups; }
};

struct EvaluationTables {
  using Table = Evaluation;
  static auto& of(auto& config) { return config.evaluate; }
};

template <class Tables>
typename Tables::Table read_table(const Config& config, Index number) {
  const auto& tables = Tables::of(config);
  return number < std::ssize(tables) ? tables[number] : typename Tables::Table{};
}

template <class Tables>
typename Tables::Table& table_to_set(Config& config, Index number) {
  auto& tables = Tables::of(config);
  if (number >= std::ssize(tables)) tables.resize(static_cast<std::size_t>(number + 1));
  return tables[number];
}

/// Binds a key to a field of table `number`, as the type that Value uses for it.
template <class Tables, class Held, class Field>
Key bound(Key key, Index number, Field Tables::Table::*field) {
  key.get = [=](const Config& config) -> Value {
    return static_cast<Held>(read_table<Tables>(config, number).*field);
  };
  key.set = [=](Config& config, const Value& value) {
    table_to_set<Tables>(config, number).*field = static_cast<Field>(std::get<Held>(value));
  };
  return key;
}

Key described(std::string path, Kind kind, std::string unit, Range range, std::string doc) {
  return {std::move(path), kind, std::move(unit), range, {}, std::move(doc), {}, {}};
}

/// The key of an evaluation's format: one of data_formats, or "auto".
Key format_key(std::string path, Index number) {
  Key key = described(std::move(path), Kind::choice, "", {},
                      "As data.format; \"auto\": data.format itself.");
  key.choices.emplace_back("auto");
  for (const Choice<DataFormat>& format : data_formats) key.choices.emplace_back(format.name);
  key.get = [number](const Config& config) -> Value {
    const std::string_view name = name_of(read_table<EvaluationTables>(config, number).format);
    return std::string(name.empty() ? "auto" : name);
  };
  key.set = [number](Config& config, const Value& value) {
    DataFormat& chosen = table_to_set<EvaluationTables>(config, number).format;
    chosen = DataFormat::automatic;
    for (const Choice<DataFormat>& format : data_formats) {
      if (format.name == std::get<std::string>(value)) chosen = format.value;
    }
  };
  return key;
}

std::vector<Key> phase_keys(const std::string& path, Index number) {
  const auto whole = [&](const char* name, std::string unit, double largest,
                         Index BatchPhase::*field, std::string doc) {
    return bound<PhaseTables, Index>(described(path + "." + name, Kind::integer, std::move(unit),
                                               from(1, largest), std::move(doc)),
                                     number, field);
  };
  return {
      whole("from_step", "steps", max_count, &BatchPhase::from_step,
            "The first step of the phase, counted from 0. Later than that of the phase before."),
      whole("global_batch", "sequences", 1000000, &BatchPhase::global_batch,
            "As train.global_batch, from that step on.")};
}

std::vector<Key> blend_keys(const std::string& path, Index number) {
  const auto text = [&](const char* name, Kind kind, std::string doc) {
    return described(path + "." + name, kind, "", {}, std::move(doc));
  };
  return {
      bound<BlendTables, std::string>(
          text("name", Kind::text, "Name of the source in reports; empty: the first of its files."),
          number, &BlendSource::name),
      bound<BlendTables, std::vector<std::string>>(
          text("files", Kind::texts, "Paths, or patterns, as data.files."), number,
          &BlendSource::files),
      bound<BlendTables, double>(described(path + ".weight", Kind::real, "", above(0, 1e15),
                                           "The source's share of the samples is its weight / "
                                           "the sum of all weights, at least a millionth."),
                                 number, &BlendSource::weight)};
}

std::vector<Key> group_keys(const std::string& path, Index number) {
  const auto number_key = [&](const char* name, double min, std::string doc) {
    return described(path + "." + name, Kind::real, "", from(min, 1000), std::move(doc));
  };
  return {
      bound<GroupTables, std::string>(
          described(path + ".match", Kind::text, "", {},
                    "Pattern with * and ? over parameter names of Hugging Face's files: "
                    "\"*bias\". The first table that matches applies."),
          number, &OptimizerGroup::match),
      bound<GroupTables, double>(
          number_key("lr_scale", 0,
                     "Factor on the learning rate; 0: the parameters do not change."),
          number, &OptimizerGroup::lr_scale),
      bound<GroupTables, double>(
          number_key(
              "weight_decay", -1,
              "Weight decay of the group's parameters, of any shape; -1: as without the group."),
          number, &OptimizerGroup::weight_decay)};
}

std::vector<Key> evaluation_keys(const std::string& path, Index number) {
  const auto text = [&](const char* name, Kind kind, std::string doc) {
    return described(path + "." + name, kind, "", {}, std::move(doc));
  };
  const auto whole = [&](const char* name, std::string unit, double largest,
                         Index Evaluation::*field, std::string doc) {
    return bound<EvaluationTables, Index>(
        described(path + "." + name, Kind::integer, std::move(unit), from(0, largest),
                  std::move(doc)),
        number, field);
  };
  return {bound<EvaluationTables, std::string>(
              text("name", Kind::text, "Name in reports; empty: the first of its files."), number,
              &Evaluation::name),
          bound<EvaluationTables, std::vector<std::string>>(
              text("files", Kind::texts, "Paths, or patterns, as data.files."), number,
              &Evaluation::files),
          format_key(path + ".format", number),
          whole("token_bytes", "bytes", 4, &Evaluation::token_bytes,
                "Bytes of a token in format \"raw\", 2 or 4; 0: data.token_bytes."),
          whole("every", "steps", max_count, &Evaluation::every,
                "Steps from one evaluation to the next, and at the end; 0: only at the end. With "
                "model.initial, also before the first step."),
          whole("batches", "batches", max_count, &Evaluation::batches,
                "Global batches of one evaluation; 0: all micro-batches that the files fill.")};
}

template <class Tables>
TableList list_of(std::string path, std::string doc,
                  std::vector<Key> (*keys_of)(const std::string&, Index), bool changes_bits) {
  TableList list{
      std::move(path),
      std::move(doc),
      [](const Config& config) { return static_cast<Index>(Tables::of(config).size()); },
      [](Config& config, Index size) { Tables::of(config).resize(static_cast<std::size_t>(size)); },
      {}};
  for (Index i = 0; i < max_tables; ++i) {
    list.keys.push_back(keys_of(table_path(list.path, i), i));
    for (Key& key : list.keys.back()) key.changes_bits = changes_bits;
  }
  return list;
}

}  // namespace

const std::vector<TableList>& table_lists() {
  static const std::vector<TableList> all{
      list_of<PhaseTables>("train.phase",
                           "Other batch sizes than train.global_batch from a step on: one table "
                           "each (docs/optimizers.md).",
                           phase_keys, /*changes_bits=*/true),
      list_of<GroupTables>("optimizer.group",
                           "Learning rate and weight decay of some parameters: one table each "
                           "(docs/optimizers.md).",
                           group_keys, /*changes_bits=*/true),
      list_of<BlendTables>("data.blend",
                           "Training data from several sources, instead of data.files: one table "
                           "each (docs/data.md).",
                           blend_keys, /*changes_bits=*/false),
      list_of<EvaluationTables>("evaluate",
                                "Data whose loss the run computes: one table each (docs/data.md).",
                                evaluation_keys, /*changes_bits=*/false)};
  return all;
}

}  // namespace kzero::deck
