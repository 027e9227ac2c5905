#include "app/evaluate_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "app/inference_command.hpp"
#include "app/launch.hpp"
#include "app/mistakes.hpp"
#include "base/printable.hpp"
#include "convert/tokenizer_files.hpp"
#include "grid/agreement.hpp"
#include "infer/evaluation.hpp"
#include "infer/input_file.hpp"
#include "infer/log_prob_output.hpp"
#include "infer/token_bytes.hpp"
#include "infer/top_output.hpp"
#include "runtime/agreement_pace.hpp"
#include "runtime/signals.hpp"
#include "runtime/stop_signal.hpp"
#include "runtime/wall_time.hpp"

namespace kzero::app {

namespace {

using Clock = std::chrono::steady_clock;

// Enough rows for full speed, few enough for any node.
constexpr Index default_batch = 4, max_default_sequence = 2048;

/// The parts of an evaluation, in the order of their construction.
class Evaluation {
 public:
  Evaluation(const EvaluateArguments& arguments, const runtime::Session& session)
      : arguments_(arguments),
        session_(session),
        world_(grid::world_group()),
        source_(placed(infer::open(world_, arguments.source,
                                   {.tensor = arguments.tensor,
                                    .precision = arguments.precision,
                                    .is_partitioned = arguments.is_partitioned,
                                    .is_average = arguments.is_average,
                                    .sequence = arguments.sequence_ranks,
                                    .chunks = arguments.sequence_chunks,
                                    .is_as_trained = arguments.is_as_trained}))),
        grid_(source_.config.grid.data, source_.config.grid.tensor,
              source_.config.placement.node_of_rank, source_.config.grid.sequence),
        machinery_(source_.config, session.threads(), grid_) {}

  ExitCode run() {
    if (is_root())
      for (const std::string& note : source_.notes)
        std::cerr << "kzero: " << printable_lines(note) << std::endl;
    find_byte_lengths();
    const std::vector<Input> inputs = open_inputs();
    if (!arguments_.log_probs.empty()) log_probs_.emplace(world_, arguments_.log_probs);
    if (arguments_.top > 0) top_.emplace(world_, arguments_.out);
    std::vector<infer::FileScore> scores;
    stop_.emplace(runtime::StopRules{
        .answer = "kzero: stops after this batch, without a score; Ctrl-\\ ends it now\n"});
    for (const Input& input : inputs) {
      scores.push_back(score(input));
      if (!is_root() || arguments_.is_json) continue;
      if (scores.size() == 1) std::cout << infer::heading(described_);
      std::cout << '\n' << infer::table(scores.back(), described_) << std::flush;
    }
    if (is_root() && arguments_.is_json) std::cout << infer::json(described_, scores);
    world_.barrier();  // a rank that leaves early must not end the others
    return ExitCode::done;
  }

 private:
  struct Input {
    infer::InputFile file;
    Index sequence = 0;  // tokens of a row
  };

  /// Collective over the launch.
  infer::Source placed(infer::Source source) const {
    source.config.placement = placement_of(source.config, session_);
    return source;
  }

  bool is_root() const { return world_.is_root(); }
  const deck::Config& config() const { return source_.config; }

  /// Uses the tokenizer, if there is one; texts of bytes need none.
  void find_byte_lengths() {
    grid::collectively(world_, [&] {
      const auto file = infer::find_tokenizer(source_, arguments_.tokenizer);
      tokenizer_ = file;
      if (file.empty()) {
        no_byte_lengths_ = "no tokenizer.json was found; --tokenizer FILE names one";
        return;
      }
      try {
        byte_lengths_ = infer::token_bytes(file.string(), config().model.vocab);
      } catch (const Error& error) {
        if (!arguments_.tokenizer.empty()) throw;  // one that was only found is optional
        no_byte_lengths_ = error.what();
      }
    });
  }

  Index token_bytes() const {
    return arguments_.token_bytes > 0 ? arguments_.token_bytes : config().data.token_bytes;
  }

  std::optional<data::TokenEncoding> default_format() const {
    if (!source_.is_checkpoint) return std::nullopt;
    // A converted model keeps its tokenizer, whatever its deck says of data.
    if (config().data.format == deck::DataFormat::bytes && infer::has_tokenizer(source_))
      return std::nullopt;
    return data::TokenEncoding(config().data.format, token_bytes());
  }

  Index chunks() const { return config().train.sequence_chunks; }

  /// Returns the tokens of a row. Rows that need not be longer than what they hold are rounded up
  /// to complete chunks.
  Index sequence_of(const infer::InputFile& file) const {
    const Index needed = needed_sequence(file);
    if (arguments_.sequence == 0 && !file.tokens) return round_up(needed, chunks());
    KZERO_REQUIRE(
        needed % chunks() == 0, ExitCode::usage,
        "{}: sequences of {} tokens cannot have {} chunks of equal length; choose another "
        "--sequence or --sequence-chunks",
        printable(file.name), needed, chunks());
    return needed;
  }

  Index needed_sequence(const infer::InputFile& file) const {
    const Index max_sequence = config().model.sequence;
    if (file.tokens) {
      if (arguments_.sequence > 0) return arguments_.sequence;
      if (arguments_.is_as_trained) return max_sequence;
      // A window that a short text cannot fill would be computed all the same.
      const Index default_sequence = std::min(max_sequence, max_default_sequence),
                  scored = file.tokens->size - 1;
      return std::min(default_sequence, std::max<Index>(1, round_up(scored, chunks())));
    }
    const Index there = arguments_.sequence > 0 ? arguments_.sequence : max_sequence;
    if (file.documents) {
      KZERO_REQUIRE(arguments_.tokens == 0, ExitCode::usage,
                    "{}: --tokens limits texts, but these are documents, which are scored whole",
                    printable(file.name));
      KZERO_REQUIRE(file.documents->longest() <= there, ExitCode::usage,
                    "{}: its longest document has {} tokens, but {} = {}", printable(file.name),
                    file.documents->longest(),
                    arguments_.sequence > 0 ? "--sequence" : "the model's sequence", there);
      return arguments_.sequence > 0 ? there : file.documents->longest();
    }
    const Index needed = data::longest_row(file.choices) - 1;
    KZERO_REQUIRE(needed <= there, ExitCode::usage,
                  "{}: its longest context with an ending has {} tokens, but {} = {} makes room "
                  "for {}",
                  printable(file.name), needed + 1,
                  arguments_.sequence > 0 ? "--sequence" : "the model's sequence", there,
                  there + 1);
    return arguments_.sequence > 0 ? arguments_.sequence : needed;
  }

  Index batch_size() const {
    if (arguments_.batch > 0) return arguments_.batch;
    return arguments_.is_as_trained || chunks() > 1 ? config().train.micro_batch : default_batch;
  }

  /// Reloads the model for rows of another length: learned positions and buffers depend on it.
  infer::ForwardModel& model_for(Index sequence) {
    if (model_ && model_->shape().sequence == sequence) return *model_;
    model_.reset();
    const Index batch = batch_size();
    model_ =
        infer::load(source_, {batch, sequence, arguments_.top}, machinery_, session_.node_size());
    described_ = {.path = source_.path,
                  .parameters = model_->parameters(),
                  .precision = config().train.precision,
                  .data_ranks = machinery_.grid.data().size(),
                  .tensor_ranks = machinery_.grid.tensor().size(),
                  .sequence_ranks = machinery_.grid.sequence().size(),
                  .batch = batch,
                  .memory = model_->planned(),
                  .no_byte_lengths = no_byte_lengths_};
    return *model_;
  }

  const infer::TokenText& token_text() {
    if (!token_text_)
      token_text_ = infer::open_token_text(source_, arguments_.tokenizer, arguments_.special);
    return *token_text_;
  }

  void require_top() const {
    const Index top = arguments_.top, vocab = config().model.vocab;
    KZERO_REQUIRE((top > 0) == !arguments_.out.empty(), ExitCode::usage,
                  "--top K and --out FILE go together, found only {}", top > 0 ? "--top" : "--out");
    if (top == 0) return;
    KZERO_REQUIRE(top <= vocab, ExitCode::usage,
                  "--top must be at most the model's vocabulary, {} tokens, found {}", vocab, top);
    KZERO_REQUIRE(arguments_.files.size() == 1, ExitCode::usage,
                  "--top is for one file or pattern, found {}", arguments_.files.size());
    KZERO_REQUIRE(arguments_.tokens == 0, ExitCode::usage,
                  "--top is for all tokens of the data; leave out --tokens");
  }

  /// Opens all files before the first is scored: a mistake in the last should not cost hours.
  std::vector<Input> open_inputs() {
    grid::collectively(world_, [&] {
      KZERO_REQUIRE(arguments_.batch <= 1 || chunks() == 1, ExitCode::usage,
                    "--batch must be 1 with sequences of {} chunks, found {}", chunks(),
                    arguments_.batch);
      KZERO_REQUIRE(arguments_.log_probs.empty() || arguments_.files.size() == 1, ExitCode::usage,
                    "--log-probs is for one file or pattern, found {}", arguments_.files.size());
    });
    grid::collectively(world_, [&] { require_top(); });
    std::vector<Input> inputs;
    const auto format = infer::file_format(arguments_.format, token_bytes());
    for (const std::string& name : arguments_.files) {
      Input input{infer::open_input(world_, name, format, default_format(), config().model.vocab,
                                    [this]() -> const infer::TokenText& { return token_text(); })};
      grid::collectively(world_, [&] {
        KZERO_REQUIRE(arguments_.log_probs.empty() || input.file.documents, ExitCode::usage,
                      "--log-probs: {} has no documents with targets", printable(name));
        KZERO_REQUIRE(arguments_.top == 0 || input.file.files, ExitCode::usage,
                      "--top: {} is neither a file of tokens nor of documents, which a training "
                      "reads; input/prepare.py makes them",
                      printable(name));
        input.sequence = sequence_of(input.file);
      });
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

  /// Ends the command on every rank if a stop signal has reached any. Collective over the launch.
  void require_no_stop(const Input& input) {
    if (!pace_.is_due()) return;
    const Index mine = pace_.pack(runtime::encode(stop_->wish()));
    const auto wish = runtime::decode_stop(pace_.unpack(world_.max(mine)));
    if (!wish) return;
    throw grid::AgreedError(ExitCode::other, fmt::format("stopped by {}; {} has no score",
                                                         runtime::signal_name(wish->signal),
                                                         printable(input.file.name)));
  }

  infer::FileScore score(const Input& input) {
    const infer::InputFile& file = input.file;
    infer::ForwardModel& loaded = model_for(input.sequence);
    std::unique_ptr<infer::ForwardModel> teaching;
    if (top_)
      teaching = top_->begin(source_, file, loaded, machinery_.grid.data(), tokenizer_.string());
    infer::ForwardModel& model = teaching ? *teaching : loaded;
    const auto begin = Clock::now();
    infer::FileScore score{.file = file.name, .sequence = input.sequence};
    const grid::Group& data = machinery_.grid.data();
    const auto before_round = [&] { require_no_stop(input); };
    if (file.tokens) {
      score.format = file.format;
      const std::vector<Index> ones(file.is_bytes ? config().model.vocab : 0, 1);
      score.text = infer::score_text(model, data, *file.tokens, arguments_.tokens,
                                     ones.empty() ? byte_lengths_ : ones, before_round);
    } else if (file.documents) {
      score.format = file.format;
      std::vector<double> log_probs(log_probs_ ? file.documents->documents() : 0);
      score.text = infer::score_documents(model, data, *file.documents, byte_lengths_, before_round,
                                          log_probs);
      if (log_probs_) log_probs_->write(source_, *file.documents, std::move(log_probs));
    } else {
      score.choice = infer::score_choices(model, data, file.choices, before_round);
    }
    if (top_) top_->finish();
    score.seconds = runtime::seconds_since(begin);
    return score;
  }

  const EvaluateArguments& arguments_;
  const runtime::Session& session_;
  grid::Group world_;
  infer::Source source_;
  grid::ProcessGrid grid_;
  engine::Machinery machinery_;
  std::optional<runtime::StopSignal> stop_;  // while files are scored; before, a signal ends it
  runtime::AgreementPace pace_;
  std::unique_ptr<infer::TokenText> token_text_;  // of plain texts
  std::vector<Index> byte_lengths_;
  std::string no_byte_lengths_;
  std::filesystem::path tokenizer_;  // empty: none was found
  std::unique_ptr<infer::ForwardModel> model_;
  std::optional<infer::LogProbOutput> log_probs_;
  std::optional<infer::TopOutput> top_;
  infer::EvaluatedModel described_;
};

void add_count(CLI::App& command, const char* name, Index& value, const char* text) {
  command.add_option(name, value, text)
      ->check(CLI::Range(1, 1'000'000'000))
      ->transform(whole_number());
}

}  // namespace

CLI::App* add_evaluate(CLI::App& cli, EvaluateArguments& arguments) {
  CLI::App* command = cli.add_subcommand(
      "evaluate", "loss, perplexity and accuracy of a model; launch it with mpiexec or alone");
  command
      ->add_option("model", arguments.source,
                   "a checkpoint, a folder of checkpoints, or a Hugging Face folder")
      ->required();
  command
      ->add_option(
          "files", arguments.files,
          "files or patterns of tokens, documents or plain text, and llm.c's choice files; each "
          "gets a score")
      ->required();
  command
      ->add_option("--format", arguments.format,
                   "format of the files; default: by their headers, text for .txt, otherwise the "
                   "checkpoint's "
                   "data.format")
      ->check(CLI::IsMember(infer::file_format_names()));
  command
      ->add_option(
          "--token-bytes", arguments.token_bytes,
          "bytes of a token in raw files, 2 or 4; default: the checkpoint's data.token_bytes")
      ->check(CLI::IsMember({2, 4}));
  command->add_option("--tokenizer", arguments.tokenizer,
                      "tokenizer.json, for plain text and bits per byte; default: in the folder of "
                      "the model or its data");
  add_special_tokens(*command, arguments.special);
  add_count(*command, "--batch", arguments.batch,
            "sequences at once on a rank; default: 4, or 1 with several chunks");
  add_count(*command, "--sequence", arguments.sequence,
            "tokens of a sequence; default: the model's context, at most 2048, or as many as "
            "short texts, documents and choices need");
  add_count(*command, "--tokens", arguments.tokens, "score only the first tokens of each text");
  add_count(*command, "--tensor", arguments.tensor,
            "ranks that share each layer's work; default: 1");
  add_count(*command, "--sequence-ranks", arguments.sequence_ranks,
            "data-parallel ranks that share each sequence, which need less memory each; default: "
            "1");
  add_count(*command, "--sequence-chunks", arguments.sequence_chunks,
            "chunks of a sequence, a multiple of --sequence-ranks; their number affects the last "
            "bits; default: --sequence-ranks");
  add_precision(*command, arguments.precision);
  command->add_flag("--partition", arguments.is_partitioned,
                    "partition the parameters over the data ranks, as ZeRO stage 3 does");
  command->add_flag("--ema", arguments.is_average,
                    "use the checkpoint's moving average of the weights (optimizer.ema)");
  command->add_flag("--as-trained", arguments.is_as_trained,
                    "compute as the checkpoint's run did: with its precision, micro-batch, "
                    "sequence, chunks and tiles; its validation loss comes out bit for bit");
  command->add_option("--log-probs", arguments.log_probs,
                      "also write the sum of ln p of each document's targets to this file, as the "
                      "reference of preference losses");
  add_count(*command, "--top", arguments.top,
            "also write this many most probable tokens of each position and ln p of each to --out, "
            "from which a student learns (distill.file)");
  command->add_option("--out", arguments.out, "the file that --top writes");
  command->add_flag("--json", arguments.is_json, "print one JSON object");
  return command;
}

ExitCode evaluate(const EvaluateArguments& arguments) {
  return run_inference([&](const runtime::Session& session) {
    Evaluation evaluation(arguments, session);
    return evaluation.run();
  });
}

}  // namespace kzero::app
