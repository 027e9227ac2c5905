#include "deck/key_builders.hpp"

namespace kzero::deck {

namespace {

/// Lets a key have a meaning for these losses alone, with these defaults.
Key only_with(Key key, const std::vector<std::pair<PreferenceLoss, Value>>& defaults) {
  key.depends_on = "preference.loss";
  for (const auto& [loss, value] : defaults)
    key.uses.push_back({std::string(name_of(loss)), value});
  return key;
}

}  // namespace

void add_preference_keys(std::vector<Key>& table) {
  using enum PreferenceLoss;
  constexpr auto section = &Config::preference;
  table.push_back(choice("preference.loss", section, &Preference::loss, preference_losses,
                         "The loss of a pair of answers, with data.format = \"pairs\" "
                         "(docs/preferences.md)."));
  table.push_back(only_with(real("preference.beta", section, &Preference::beta, above(0, 1e6), "",
                                 "Factor on the difference of the answers; \"orpo\": on the odds "
                                 "ratio's term."),
                            {{dpo, 0.1}, {ipo, 0.1}, {simpo, 2.0}, {orpo, 0.1}}));
  table.push_back(
      only_with(real("preference.smooth", section, &Preference::smooth, below(0, 0.5), "",
                     "Probability that the answers of a pair are swapped (label "
                     "smoothing)."),
                {{dpo, 0.0}}));
  table.push_back(
      only_with(real("preference.gamma", section, &Preference::gamma, from(0, 1e6), "",
                     "Margin by which beta times the chosen answer's mean ln p should be larger."),
                {{simpo, 1.0}}));
  table.push_back(only_with(real("preference.nll", section, &Preference::nll, from(0, 1e6), "",
                                 "Adds this times the mean -ln p of the chosen answer's targets."),
                            {{dpo, 0.0}, {ipo, 0.0}, {simpo, 0.0}, {orpo, 1.0}}));
  // A restart compares its contents (data::DocumentFiles::digest).
  table.push_back(same_bits(
      only_with(text("preference.reference", section, &Preference::reference,
                     "File of log-probabilities of the data under model.initial, which kzero "
                     "evaluate --log-probs writes."),
                {{dpo, {}}, {ipo, {}}})));
}

void add_distill_keys(std::vector<Key>& table) {
  constexpr auto section = &Config::distill;
  // A restart compares its contents (data::TeacherFile::digest).
  table.push_back(same_bits(texts(
      "distill.file", section, &Distill::file,
      "File of a teacher's most probable tokens, which kzero evaluate --top writes for "
      "data.files; with [[data.blend]] one for each source, in order (docs/distillation.md).")));
  table.push_back(
      real("distill.weight", section, &Distill::weight, from(0, 1), "",
           "Weight of the divergence from the teacher; the cross-entropy has the rest."));
  table.push_back(integer("distill.top", section, &Distill::top, from(1, 1000000), "tokens",
                          "Tokens of each position in distill.file."));
}

}  // namespace kzero::deck
