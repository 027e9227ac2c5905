#include "infer/evaluation.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "engine/machinery.hpp"

namespace kzero::infer {

namespace {

using Json = nlohmann::ordered_json;

std::string line(const char* name, const std::string& value) {
  return fmt::format("  {:<20}{}\n", name, value);
}

std::string share(Index right, std::size_t all) {
  return fmt::format("{:.4f} ({} of {})", static_cast<double>(right) / static_cast<double>(all),
                     right, all);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void add(const TextScore& text, const std::string& format, Json& result) {
  result["kind"] = "text";
  result["format"] = format;
  result["loss"] = text.loss;
  result["perplexity"] = text.perplexity();
  result["bits_per_byte"] = or_null(text.bits_per_byte());
  result["tokens"] = text.tokens;
  result["bytes"] = or_null(text.bytes);
}

void add(const ChoiceScore& choice, Json& result) {
  result["kind"] = "choice";
  result["accuracy"] = choice.accuracy();
  result["accuracy_normalized"] = choice.accuracy_normalized();
  result["examples"] = choice.sums.size();
  result["chosen"] = choice.sums;
  result["chosen_normalized"] = choice.means;
}

std::string sharing(const EvaluatedModel& model) {
  if (model.sequence_ranks == 1) return "";
  return fmt::format(", {} data ranks share each sequence", model.sequence_ranks);
}

}  // namespace

std::string heading(const EvaluatedModel& model) {
  return fmt::format(
      "model       {}\n            {} parameters, {}\n"
      "grid        {} data x {} tensor ranks, batches of {}{}\n"
      "memory      rank 0 takes {}\n",
      printable(model.path), model.parameters, name_of(model.precision), model.data_ranks,
      model.tensor_ranks, model.batch, sharing(model), engine::memory_text(model.memory));
}

std::string table(const FileScore& score, const EvaluatedModel& model) {
  std::string text = printable(score.file) + '\n';
  if (score.text) {
    const TextScore& found = *score.text;
    const auto bits = found.bits_per_byte();
    const auto rate = static_cast<double>(found.tokens) / score.seconds;
    text += line("loss", fmt::format("{:.6f}", found.loss)) +
            line("perplexity", fmt::format("{:.6g}", found.perplexity())) +
            line("bits per byte", bits          ? fmt::format("{:.6f}", *bits)
                                  : found.bytes ? "not known: its tokens do not represent text"
                                                : "not known: " + model.no_byte_lengths) +
            line("tokens", fmt::format("{} in sequences of {}", found.tokens, score.sequence)) +
            line("seconds", fmt::format("{:.1f}, {:.0f} tokens/s", score.seconds, rate));
  }
  if (score.choice) {
    const ChoiceScore& found = *score.choice;
    text += line("accuracy", share(found.right_by_sum, found.sums.size())) +
            line("accuracy normalized", share(found.right_by_mean, found.means.size())) +
            line("seconds", fmt::format("{:.1f}", score.seconds));
  }
  return text;
}

std::string json(const EvaluatedModel& model, const std::vector<FileScore>& scores) {
  Json results = Json::array();
  for (const FileScore& score : scores) {
    Json result{{"file", score.file}};
    if (score.text) add(*score.text, score.format, result);
    if (score.choice) add(*score.choice, result);
    result["sequence"] = score.sequence;
    result["seconds"] = score.seconds;
    results.push_back(result);
  }
  Index memory = 0;
  for (const Index bytes : model.memory) memory += bytes;
  const Json all{{"model", model.path},
                 {"parameters", model.parameters},
                 {"precision", name_of(model.precision)},
                 {"data_ranks", model.data_ranks},
                 {"tensor_ranks", model.tensor_ranks},
                 {"sequence_ranks", model.sequence_ranks},
                 {"batch", model.batch},
                 {"planned_bytes", memory},
                 {"results", results}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace kzero::infer
