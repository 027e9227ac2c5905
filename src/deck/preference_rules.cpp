#include "deck/rule_parts.hpp"

#include <fmt/format.h>

namespace kzero::deck {

namespace {

class PreferenceRules : ViolationList {
 public:
  PreferenceRules(const Config& config, Purpose purpose)
      : config_(config), loss_(name_of(config.preference.loss)), purpose_(purpose) {}

  std::vector<Violation> apply() {
    check_data();
    if (!prefers(config_.preference)) return std::move(violations_);
    check_reference();
    check_sequences();
    return std::move(violations_);
  }

 private:
  void check_data() {
    const Data& data = config_.data;
    const bool has_pairs = data.format == DataFormat::pairs, wants = prefers(config_.preference);
    refuse_if(wants && !has_pairs, {"preference.loss", "data.format"},
              fmt::format("preference.loss = \"{}\" needs data.format = \"pairs\", found \"{}\"",
                          loss_, name_of(data.format)));
    refuse_if(has_pairs && !wants, {"data.format", "preference.loss"},
              "data.format = \"pairs\" needs a preference.loss, found \"none\"");
    refuse_if(wants && (data.validation_fraction > 0 || !data.validation_files.empty()),
              {"data.validation_fraction", "data.validation_files", "preference.loss"},
              fmt::format("preference.loss = \"{}\" has no validation; remove "
                          "data.validation_fraction and data.validation_files, and add an "
                          "[[evaluate]] with format = \"documents\"",
                          loss_));
  }

  void check_reference() {
    const Preference& preference = config_.preference;
    if (!has_reference(preference.loss)) return;
    const std::string named = fmt::format("preference.reference = \"{}\"", preference.reference);
    const bool has_file = !preference.reference.empty(), trains = purpose_ == Purpose::train;
    refuse_if(trains && !has_file, {"preference.reference", "preference.loss"},
              fmt::format("preference.loss = \"{}\" needs preference.reference, a file that `kzero "
                          "evaluate MODEL FILES --log-probs OUT` writes",
                          loss_));
    refuse_if(has_file && !config_.data.blend.empty(), {"preference.reference", "data.blend"},
              named + " is of one list of files; use data.files instead of [[data.blend]]");
    refuse_if(trains && has_file && config_.model.initial.empty(),
              {"preference.reference", "model.initial"},
              named + " needs model.initial, the weights of the reference model");
  }

  void check_sequences() {
    const Train& train = config_.train;
    refuse_if(
        train.sequence_chunks > 1, {"preference.loss", "grid.sequence"},
        fmt::format("preference.loss = \"{}\" needs sequences of one chunk: grid.sequence and "
                    "train.sequence_chunks must be 1, found {} and {}",
                    loss_, config_.grid.sequence, train.sequence_chunks));
    refuse_if(train.z_loss > 0, {"train.z_loss", "preference.loss"},
              fmt::format("train.z_loss must be 0 with preference.loss = \"{}\", found {}", loss_,
                          train.z_loss));
  }

  const Config& config_;
  std::string loss_;
  Purpose purpose_;
};

}  // namespace

std::vector<Violation> apply_preference_rules(const Config& config, Purpose purpose) {
  return PreferenceRules(config, purpose).apply();
}

}  // namespace kzero::deck
