#include "app/sample_text.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/tokenizer_files.hpp"
#include "tokenizer/tokenizer.hpp"

namespace kzero::app {

namespace {

constexpr std::size_t columns = 100;

/// The arrays of a sample, with one value per position.
struct SampleArrays {
  SampleArrays(const data::BatchSource& samples, Index sample, Index sequence)
      : inputs(static_cast<std::size_t>(sequence)),
        targets(inputs.size()),
        begin(inputs.size()),
        end(inputs.size()) {
    samples.batch(sample, 1, inputs.data(), targets.data());
    samples.documents(sample, 1, inputs.data(), begin.data(), end.data());
  }

  /// Returns whether the token at a position is a target: the position before predicts it.
  bool is_target(Index at) const { return at > begin[at] && targets[at - 1] != no_target; }

  std::vector<Token> inputs, targets;
  std::vector<std::int32_t> begin, end;
};

/// Joins words with spaces into indented lines.
std::string lines_of(const std::vector<std::string>& words) {
  std::string text, line = " ";
  for (const std::string& word : words) {
    if (line.size() + 1 + word.size() > columns && line.size() > 1) {
      text += line + '\n';
      line = " ";
    }
    line += ' ' + word;
  }
  return text + line + '\n';
}

/// The text of a document. Brackets enclose its targets.
std::string text_of(const SampleArrays& sample, Index begin, Index end,
                    const tokenizer::Tokenizer& tokenizer) {
  std::string text;
  for (Index at = begin; at < end; ++at) {
    const bool before = at > begin && sample.is_target(at - 1), here = sample.is_target(at);
    if (here && !before) text += '[';
    if (!here && before) text += ']';
    text += tokenizer.bytes(sample.inputs[at]);
  }
  if (sample.is_target(end - 1)) text += ']';
  std::string shown;
  for (std::string_view rest = text;;) {
    const std::size_t line = rest.find('\n');
    shown += printable(rest.substr(0, line)) + '\n';
    if (line == std::string_view::npos) return shown;
    rest.remove_prefix(line + 1);
  }
}

}  // namespace

std::string sample_text(const deck::Config& config, const data::Dataset& dataset, Index sample) {
  KZERO_REQUIRE(config.data.format == deck::DataFormat::documents, ExitCode::usage,
                "--sample shows documents, but data.format is \"{}\"; set \"documents\"",
                name_of(config.data.format));
  const data::Blend& training = *dataset.training;
  const Index sequence = config.model.sequence;
  const SampleArrays arrays(training, sample, sequence);
  const std::string file = convert::find_tokenizer("", "", config.data).string();
  std::optional<tokenizer::Tokenizer> tokenizer;
  if (!file.empty()) tokenizer.emplace(file);
  const data::BlendOrder::Place place = training.place(sample);
  const auto documents = training.source(place.source).documents_of(place.sample);
  std::string text = fmt::format("sample {}: step {}, documents: {}, targets: {}\n", sample,
                                 sample / config.train.global_batch, documents.size(),
                                 *training.targets(sample, 1));
  Index at = 0;
  for (const std::uint32_t document : documents) {
    const Index end = arrays.end[at];
    std::vector<std::string> words;
    for (Index i = at; i < end; ++i)
      words.push_back(arrays.is_target(i) ? fmt::format("[{}]", arrays.inputs[i])
                                          : fmt::format("{}", arrays.inputs[i]));
    const std::string& source = dataset.sources[place.source].name;
    text += fmt::format("document {}{}: positions {} to {}\n", document,
                        source.empty() ? "" : " of " + printable(source), at, end - 1);
    text += lines_of(words);
    if (tokenizer) text += text_of(arrays, at, end, *tokenizer);
    at = end;
  }
  if (at < sequence) text += fmt::format("no document: positions {} to {}\n", at, sequence - 1);
  return text;
}

}  // namespace kzero::app
