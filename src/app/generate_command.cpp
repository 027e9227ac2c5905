#include "app/generate_command.hpp"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <sstream>

#include "app/inference_command.hpp"
#include "app/prompt_input.hpp"
#include "app/standard_output.hpp"
#include "base/printable.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "infer/load_decoder.hpp"
#include "infer/prompts.hpp"
#include "runtime/launch.hpp"

namespace kzero::app {

namespace {

using infer::PromptText;

/// Rows of a pass over a prompt: enough for GEMMs to reach their speed.
constexpr Index prompt_rows = 256;

void note(const grid::Group& world, const std::string& text) {
  if (world.is_root()) std::cerr << "note        " << printable_lines(text) << std::endl;
}

/// `chat` is null unless prompts are messages.
std::vector<PromptText> given_prompts(const GenerateArguments& a, PromptInput& input,
                                      const infer::ChatParts* chat) {
  const auto prompt_of = [&](const std::string& text) {
    return chat == nullptr ? PromptText{.text = text} : infer::chat_prompt(*chat, text);
  };
  std::vector<PromptText> prompts;
  for (const std::string& text : a.prompts) prompts.push_back(prompt_of(text));
  if (!prompts.empty()) return prompts;
  std::string text = input.text();
  if (!a.prompt_file.empty()) {
    std::istringstream lines(std::move(text));
    return infer::read_prompts(lines, input.name(), chat);
  }
  if (text.ends_with('\n')) text.pop_back();  // added by echo
  if (text.ends_with('\r')) text.pop_back();
  prompts.push_back(prompt_of(text));
  return prompts;
}

/// Rank 0 reads the prompts for all.
std::vector<PromptText> read_prompts(const grid::Group& world, const GenerateArguments& a,
                                     PromptInput& input, const infer::Source& source) {
  std::vector<PromptText> prompts;
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    std::optional<infer::ChatParts> chat;
    if (a.is_chat) chat.emplace(infer::chat_parts_file(source, a.tokenizer));
    prompts = given_prompts(a, input, chat ? &*chat : nullptr);
  });
  prompts.resize(std::stoull(world.broadcast(std::to_string(prompts.size()))));
  for (PromptText& prompt : prompts) {
    prompt.text = world.broadcast(prompt.text);
    const std::string max_tokens = world.broadcast(std::to_string(prompt.max_tokens.value_or(0)));
    if (max_tokens != "0") prompt.max_tokens = std::stoll(max_tokens);
  }
  return prompts;
}

/// A loaded model, and the prompts that this data rank continues.
struct GenerateJob {
  const GenerateArguments& arguments;
  std::vector<PromptText> texts;  // of all ranks
  std::unique_ptr<infer::TokenText> tokens;
  std::vector<infer::Prompt> prompts;  // of this data rank
  Index positions = 1;                 // needed by the longest of all prompts

  GenerateJob(const GenerateArguments& a, PromptInput& input, const grid::Group& world,
              const infer::Source& source, const grid::Group& data)
      : arguments(a), texts(read_prompts(world, a, input, source)) {
    const Index max_sequence = source.config.model.sequence;
    grid::collectively(world, [&] {
      tokens = infer::open_token_text(source, a.tokenizer,
                                      a.is_chat ? infer::SpecialTokens::left_out : a.special);
      for (Index i = 0; i < std::ssize(texts); ++i) {
        const auto prompt = infer::encode_prompt(*tokens, texts[i], i, a.max_tokens, max_sequence);
        const Index needed = std::ssize(prompt.tokens) + prompt.max_tokens;
        positions = std::max(positions, std::min(max_sequence, needed));
        if (i % data.size() == data.rank()) prompts.push_back(prompt);
      }
    });
  }

  /// The largest number of prompts that a data rank continues at once.
  Index sequences(Index data_ranks) const {
    return std::min(arguments.batch, ceil_div(std::ssize(texts), data_ranks));
  }
  bool streams() const { return texts.size() == 1 && !arguments.json; }

  std::string shown(Index number, const infer::Continuation& made) const {
    const PromptText& prompt = texts[number];
    return arguments.json ? infer::json_line(prompt, made)
                          : infer::labelled_block(prompt, number, made);
  }

  infer::GeneratorOptions options() const {
    return {arguments.sampling, arguments.stops, tokens->end_tokens(),
            arguments.recompute ? infer::CacheUse::recompute : infer::CacheUse::reuse,
            [this](Token token) { return tokens->bytes(token); }};
  }
};

/// Prints complete continuations in the order of the prompts.
class GeneratedOutput {
 public:
  GeneratedOutput(const GenerateJob& job, const engine::Machinery& m, const GeneratedText& print)
      : job_(job), m_(m), print_(print), shown_(job.prompts.size()) {}

  infer::GeneratorEvents events() {
    return {[this](std::size_t, std::string_view text) {
              if (job_.streams() && prints()) print_(text);
            },
            [this](std::size_t i, const infer::Continuation& made) {
              if (!job_.streams()) shown_[i] = job_.shown(job_.prompts[i].number, made);
              if (job_.streams() && prints()) print_("\n");
              if (m_.grid.data().size() == 1 && prints()) print_complete();
            }};
  }

  /// Also prints what other data ranks have generated. Collective over all ranks.
  void finish() {
    const Index data_ranks = m_.grid.data().size();
    for (Index i = 0; i < std::ssize(job_.texts) && data_ranks > 1; ++i) {
      const bool is_mine = i % data_ranks == m_.grid.data().rank() && m_.grid.tensor().is_root();
      const std::string mine = is_mine ? shown_[i / data_ranks] : std::string();
      for (const std::string& text : m_.grid.world().gather(mine)) {
        if (!text.empty()) print_(text);
      }
    }
    grid::collectively(m_.grid.world(), [&] {
      const int error = output_error();
      KZERO_REQUIRE(error == 0, ExitCode::files, "standard output cannot be written: {}",
                    std::strerror(error));
    });
  }

 private:
  bool prints() const { return m_.grid.world().is_root(); }

  void print_complete() {
    for (; next_ < shown_.size() && !shown_[next_].empty(); ++next_) print_(shown_[next_]);
  }

  const GenerateJob& job_;
  const engine::Machinery& m_;
  const GeneratedText& print_;
  std::vector<std::string> shown_;  // by prompt of this data rank
  std::size_t next_ = 0;
};

std::string rates_text(const infer::GeneratorRates& r) {
  const auto rate = [](Index tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  return fmt::format(
      "read {} tokens in {:.2f} s ({:.4g} tokens/s), then {} in {:.2f} s ({:.4g} tokens/s)",
      r.read_tokens, r.read_seconds, rate(r.read_tokens, r.read_seconds), r.step_tokens,
      r.step_seconds, rate(r.step_tokens, r.step_seconds));
}

}  // namespace

void generate_with(const GenerateArguments& a, PromptInput& input, const runtime::Session& session,
                   const GeneratedText& print) {
  const grid::Group world = grid::world_group();
  const Index tensor = a.tensor > 0 ? a.tensor : world.size();
  const infer::Source source = infer::open(world, a.source, {tensor, a.precision});
  for (const std::string& text : source.notes) note(world, text);
  const grid::ProcessGrid grid(source.config.grid.data, source.config.grid.tensor);
  engine::Machinery machinery(source.config, session.threads(), grid);
  const GenerateJob job(a, input, world, source, machinery.grid.data());
  const model::DecoderShape shape{job.sequences(machinery.grid.data().size()), job.positions,
                                  std::min(prompt_rows, job.positions)};
  const auto model = infer::load_decoder(source, shape, machinery, session.node_size());
  note(world,
       fmt::format("{} in {}, {}", printable(source.path), name_of(source.config.train.precision),
                   engine::memory_text(machinery.ledger.peaks())));
  GeneratedOutput output(job, machinery, print);
  infer::GeneratorRates rates;
  // Data ranks take different numbers of steps. If one fails, all end after their own steps.
  grid::collectively(world, [&] {
    rates = infer::generate(*model, machinery.grid.tensor(), job.prompts, job.options(),
                            output.events());
  });
  output.finish();
  const bool counts = machinery.grid.tensor().is_root();
  const auto of_all = [&](Index tokens) {
    return static_cast<Index>(world.sum(counts ? static_cast<double>(tokens) : 0));
  };
  rates.read_tokens = of_all(rates.read_tokens);
  rates.step_tokens = of_all(rates.step_tokens);
  note(world, rates_text(rates));
}

ExitCode generate(const GenerateArguments& arguments) {
  PromptInput input(arguments.prompt_file);
  if (arguments.prompts.empty() && input.is_standard_input() && runtime::launch_rank() == 0)
    input.start();
  return run_inference([&](const runtime::Session& session) {
    generate_with(arguments, input, session,
                  [](std::string_view text) { std::cout << text << std::flush; });
    return ExitCode::done;
  });
}

}  // namespace kzero::app
