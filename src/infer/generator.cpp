#include "infer/generator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "grid/agreement.hpp"
#include "infer/text_stream.hpp"
#include "model/decoder.hpp"

namespace kzero::infer {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A prompt that is being continued in a sequence of the cache.
struct Active {
  std::size_t prompt;
  Index sequence;
  std::vector<Token> tokens;  // those of the prompt and those generated
  std::size_t prompt_tokens;
  TextStream stream;
  Continuation made{};

  Index position() const { return static_cast<Index>(tokens.size()); }
};

class Generation {
 public:
  Generation(model::Decoder& model, const grid::Group& ranks, std::span<const Prompt> prompts,
             const GeneratorOptions& options, const GeneratorEvents& events)
      : model_(model),
        ranks_(ranks),
        prompts_(prompts),
        options_(options),
        events_(events),
        sampler_(options.sampling) {
    for (Index s = model.shape().sequences; s > 0; --s) free_.push_back(s - 1);
  }

  GeneratorRates run() {
    while (next_ < prompts_.size() || !active_.empty()) {
      while (next_ < prompts_.size() && !free_.empty()) begin_next();
      if (!active_.empty()) step();
    }
    return rates_;
  }

 private:
  void begin_next();
  void step();
  std::vector<Token> next_tokens();
  std::vector<Token> choose(const std::vector<std::span<const float>>& logits);
  void append(Active& a, Token token);
  bool has_ended(const Active& a, Token last) const;
  void end(Active& a);

  model::Decoder& model_;
  const grid::Group& ranks_;
  std::span<const Prompt> prompts_;
  const GeneratorOptions& options_;
  const GeneratorEvents& events_;
  Sampler sampler_;
  GeneratorRates rates_;
  std::size_t next_ = 0;
  std::vector<Index> free_;  // sequences of the cache
  std::vector<Active> active_;
};

/// Chooses on rank 0, because the ranks' processors may round exponentials differently.
std::vector<Token> Generation::choose(const std::vector<std::span<const float>>& logits) {
  std::vector<Token> tokens(logits.size());
  grid::collectively(ranks_, [&] {
    if (!ranks_.is_root()) return;
    const std::size_t first = active_.size() - logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const Active& a = active_[first + i];
      tokens[i] = sampler_.choose(logits[i], {prompts_[a.prompt].number, a.position()});
    }
  });
  if (ranks_.size() == 1) return tokens;
  std::string sent(tokens.size() * sizeof(Token), '\0');
  std::memcpy(sent.data(), tokens.data(), sent.size());
  sent = ranks_.broadcast(sent);
  std::memcpy(tokens.data(), sent.data(), sent.size());
  return tokens;
}

void Generation::begin_next() {
  const auto begin = Clock::now();
  const Prompt& prompt = prompts_[next_];
  active_.push_back(
      {next_++, free_.back(), prompt.tokens, prompt.tokens.size(), TextStream(options_.stops)});
  free_.pop_back();
  Active& a = active_.back();
  const auto logits = model_.read(a.sequence, 0, a.tokens);
  rates_.read_tokens += a.position();
  const Token token = choose({logits}).front();
  rates_.read_seconds += seconds_since(begin);
  append(a, token);
  if (has_ended(a, token)) {
    end(a);
    active_.pop_back();
  }
}

/// Chooses the next token of each active sequence.
std::vector<Token> Generation::next_tokens() {
  if (options_.cache == CacheUse::recompute) {
    std::vector<std::vector<float>> rows;
    for (const Active& a : active_) {
      const auto row = model_.read(a.sequence, 0, a.tokens);
      rows.emplace_back(row.begin(), row.end());
    }
    return choose(std::vector<std::span<const float>>(rows.begin(), rows.end()));
  }
  std::vector<model::PlacedToken> rows;
  for (const Active& a : active_) rows.push_back({a.tokens.back(), a.sequence, a.position() - 1});
  const auto logits = model_.step(rows);
  const auto vocab = static_cast<std::size_t>(model_.vocab());
  std::vector<std::span<const float>> each;
  for (std::size_t i = 0; i < rows.size(); ++i) each.push_back(logits.subspan(i * vocab, vocab));
  return choose(each);
}

void Generation::step() {
  const auto begin = Clock::now();
  const std::vector<Token> tokens = next_tokens();
  ++rates_.steps;
  rates_.step_tokens += static_cast<Index>(tokens.size());
  rates_.step_seconds += seconds_since(begin);
  std::vector<Active> still;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    append(active_[i], tokens[i]);
    if (has_ended(active_[i], tokens[i])) {
      end(active_[i]);
    } else {
      still.push_back(std::move(active_[i]));
    }
  }
  active_ = std::move(still);
}

void Generation::append(Active& a, Token token) {
  a.tokens.push_back(token);
  a.made.tokens.push_back(token);
  if (std::ranges::find(options_.end_tokens, token) != options_.end_tokens.end()) return;
  const std::string text = a.stream.add(options_.bytes(token));
  a.made.text += text;
  if (!text.empty()) events_.text_grew(a.prompt, text);
}

bool Generation::has_ended(const Active& a, Token last) const {
  const bool is_end = std::ranges::find(options_.end_tokens, last) != options_.end_tokens.end();
  return a.stream.has_stopped() || is_end ||
         static_cast<Index>(a.made.tokens.size()) >= prompts_[a.prompt].max_tokens ||
         a.position() >= model_.shape().positions;
}

void Generation::end(Active& a) {
  const Token last = a.made.tokens.back();
  if (std::ranges::find(options_.end_tokens, last) != options_.end_tokens.end())
    a.made.reason = EndReason::end_token;
  if (a.stream.has_stopped()) a.made.reason = EndReason::stop;
  const std::string rest = a.stream.finish();
  a.made.text += rest;
  if (!rest.empty()) events_.text_grew(a.prompt, rest);
  events_.ended(a.prompt, a.made);
  free_.push_back(a.sequence);
}

}  // namespace

GeneratorRates generate(model::Decoder& model, const grid::Group& ranks,
                        std::span<const Prompt> prompts, const GeneratorOptions& options,
                        const GeneratorEvents& events) {
  return Generation(model, ranks, prompts, options, events).run();
}

}  // namespace kzero::infer
