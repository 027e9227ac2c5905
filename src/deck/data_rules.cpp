#include "deck/rule_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

constexpr double min_share = 1e-6;  // of a source among all samples

class DataRules : ViolationList {
 public:
  DataRules(Config& config, Purpose purpose)
      : config_(config), data_(config.data), purpose_(purpose) {}

  std::vector<Violation> apply() {
    check_formats();
    check_goldfish();
    check_training();
    check_blend();
    check_validation();
    check_evaluations();
    return std::move(violations_);
  }

 private:
  void check_token_bytes(const std::string& path, Index bytes) {
    refuse_if(bytes != 2 && bytes != 4, {path},
              fmt::format("{} must be 2 or 4, found {}", path, bytes));
  }

  void check_vocab(const std::string& path, DataFormat format) {
    const Index vocab = config_.model.vocab;
    refuse_if(
        format == DataFormat::bytes && vocab < 256, {"model.vocab", path},
        fmt::format("model.vocab must be at least 256 with {} = \"bytes\", found {}", path, vocab));
  }

  void check_formats() {
    check_vocab("data.format", data_.format);
    check_token_bytes("data.token_bytes", data_.token_bytes);
    refuse_if(data_.end_token >= config_.model.vocab, {"data.end_token", "model.vocab"},
              fmt::format("data.end_token must be below model.vocab = {}, found {}",
                          config_.model.vocab, data_.end_token));
    refuse_if(
        data_.end_token >= 0 && is_of_documents(data_.format), {"data.end_token", "data.format"},
        fmt::format("data.end_token has no effect with data.format = \"{}\", whose files say where "
                    "documents end; remove it",
                    name_of(data_.format)));
  }

  void check_goldfish() {
    if (data_.goldfish_k == 0) {
      refuse_if(data_.goldfish_h != Data().goldfish_h, {"data.goldfish_h", "data.goldfish_k"},
                fmt::format("data.goldfish_h = {} has no effect with data.goldfish_k = 0; remove "
                            "it, or set data.goldfish_k to 2 or more",
                            data_.goldfish_h));
      return;
    }
    refuse_if(data_.goldfish_k == 1, {"data.goldfish_k"},
              "data.goldfish_k = 1 leaves all targets out; set 2 or more, or 0 to leave none out");
    refuse_if(data_.goldfish_h > config_.model.sequence, {"data.goldfish_h", "model.sequence"},
              fmt::format("data.goldfish_h must be at most model.sequence = {}, found {}",
                          config_.model.sequence, data_.goldfish_h));
    refuse_if(data_.format == DataFormat::pairs, {"data.goldfish_k", "data.format"},
              fmt::format("data.goldfish_k must be 0 with data.format = \"pairs\", whose losses "
                          "need all of an answer, found {}",
                          data_.goldfish_k));
  }

  void check_training() {
    const bool has_files = !data_.files.empty(), has_blend = !data_.blend.empty();
    refuse_if(purpose_ == Purpose::train && !has_files && !has_blend, {"data.files"},
              "data.files must name the files to train on, found none");
    refuse_if(has_files && has_blend, {"data.blend", "data.files"},
              "data.files and [[data.blend]] cannot be set together; remove data.files, or set "
              "data.blend= on the command line");
  }

  void check_blend() {
    double sum = 0;
    for (const BlendSource& source : data_.blend) sum += source.weight;
    std::map<std::string, std::string> source_of;  // by file name as in its table
    for (std::size_t i = 0; i < data_.blend.size(); ++i) {
      BlendSource& source = data_.blend[i];
      const std::string path = table_path("data.blend", static_cast<Index>(i));
      check_table(path, source.files, source.name);
      for (const std::string& file : source.files) {
        const auto [other, is_new] = source_of.try_emplace(file, path);
        refuse_if(
            !is_new && other->second != path, {path + ".files", path},
            fmt::format("\"{}\" is both in {}.files and in {}.files", file, other->second, path));
      }
      refuse_if(source.weight < min_share * sum, {path + ".weight", path},
                fmt::format("{}.weight must be at least a millionth of the sum of all weights, {}, "
                            "found {}",
                            path, sum, source.weight));
    }
    require_own_names("data.blend", data_.blend);
  }

  /// Requires files, and names a table that has no name after its first file.
  void check_table(const std::string& path, const std::vector<std::string>& files,
                   std::string& name) {
    refuse_if(files.empty(), {path + ".files", path},
              fmt::format("{}.files must name files, found none", path));
    if (name.empty() && !files.empty()) name = files.front();
  }

  template <class Table>
  void require_own_names(const std::string& list, const std::vector<Table>& tables) {
    std::map<std::string, std::string> table_of;  // by name
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const std::string path = table_path(list, static_cast<Index>(i));
      if (tables[i].name.empty()) continue;
      const auto [other, is_new] = table_of.try_emplace(tables[i].name, path);
      refuse_if(!is_new, {path + ".name", path},
                fmt::format("{} and {} are both called \"{}\"; give each a name of its own",
                            other->second, path, tables[i].name));
    }
  }

  void check_validation() {
    const bool has_files = !data_.validation_files.empty();
    const bool has_fraction = data_.validation_fraction > 0;
    refuse_if(has_files && has_fraction, {"data.validation_fraction", "data.validation_files"},
              "data.validation_files and data.validation_fraction cannot be set together; set one");
    refuse_if(config_.train.validate_every > 0 && !has_files && !has_fraction,
              {"train.validate_every", "data.validation_files", "data.validation_fraction"},
              fmt::format("train.validate_every = {} needs data.validation_files or "
                          "data.validation_fraction above 0",
                          config_.train.validate_every));
    for (const std::string& file : data_.validation_files) {
      const auto refuse_in = [&](const std::string& path, const std::vector<std::string>& files) {
        refuse_if(std::ranges::find(files, file) != files.end(), {"data.validation_files", path},
                  fmt::format("\"{}\" is both in {} and in data.validation_files", file, path));
      };
      refuse_in("data.files", data_.files);
      for (std::size_t i = 0; i < data_.blend.size(); ++i)
        refuse_in(table_path("data.blend", static_cast<Index>(i)) + ".files", data_.blend[i].files);
    }
  }

  void check_evaluations() {
    for (std::size_t i = 0; i < config_.evaluate.size(); ++i) {
      Evaluation& table = config_.evaluate[i];
      const std::string path = table_path("evaluate", static_cast<Index>(i));
      check_table(path, table.files, table.name);
      if (table.format == DataFormat::automatic) table.format = data_.format;
      check_vocab(path + ".format", table.format);
      refuse_if(table.format == DataFormat::pairs, {path + ".format", path, "data.format"},
                fmt::format("{}.format must not be \"pairs\", which only training reads; set "
                            "\"documents\" or a format of tokens",
                            path));
      refuse_if(table.format == DataFormat::documents && !is_of_documents(data_.format),
                {path + ".format", path, "data.format"},
                fmt::format("{}.format = \"documents\" needs data.format = \"documents\", found "
                            "\"{}\"",
                            path, name_of(data_.format)));
      if (table.format == DataFormat::raw) {
        if (table.token_bytes == 0) table.token_bytes = data_.token_bytes;
        check_token_bytes(path + ".token_bytes", table.token_bytes);
      }
      refuse_if(table.format != DataFormat::raw && table.token_bytes != 0,
                {path + ".token_bytes", path + ".format", "data.format", path},
                fmt::format("{0}.token_bytes = {1} has no effect with {0}.format = \"{2}\"; remove "
                            "it, or set {0}.format = \"raw\"",
                            path, table.token_bytes, name_of(table.format)));
    }
    require_own_names("evaluate", config_.evaluate);
  }

  Config& config_;
  Data& data_;
  Purpose purpose_;
};

}  // namespace

std::vector<Violation> apply_data_rules(Config& config, Purpose purpose) {
  return DataRules(config, purpose).apply();
}

}  // namespace kzero::deck
