// kzero as a library, in the order in which its parts come: opens a model (a checkpoint or a
// Hugging Face folder), plans its memory, reads its weights and prints the token that most likely
// follows a few others.
//
//   cmake --build build/release --target next_token
//   mpiexec -n 2 build/release/next_token exported 464 3290 318    # a folder, then tokens
#include <charconv>
#include <exception>
#include <iostream>
#include <vector>

#include "base/error.hpp"
#include "infer/load_decoder.hpp"
#include "runtime/session.hpp"

namespace {

using namespace kzero;

std::vector<Token> tokens_of(int count, char** texts, Index vocab) {
  std::vector<Token> tokens;
  for (int i = 0; i < count; ++i) {
    const std::string_view text = texts[i];
    Token token = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    KZERO_REQUIRE(is_whole && token >= 0 && token < vocab, ExitCode::usage,
                  "\"{}\" is not a token: tokens are numbers from 0 to {}", text, vocab - 1);
    tokens.push_back(token);
  }
  return tokens;
}

/// Prints the token after those of the command line. All ranks of the launch divide each layer
/// among them (tensor parallelism), and all get the same logits.
void print_next_token(int argc, char** argv) {
  // MPI and Kokkos live as long as the session.
  const runtime::Session session(runtime::SessionOptions{.threads = 0});
  const grid::Group world = grid::world_group();

  // What the model is: shapes and names, from which everything else follows. No weight is read.
  const infer::Source source = infer::open(world, argv[1], {.tensor = world.size()});
  const std::vector<Token> prompt = tokens_of(argc - 2, argv + 2, source.config.model.vocab);
  const Index length = static_cast<Index>(prompt.size()), longest = source.config.model.sequence;
  KZERO_REQUIRE(length <= longest, ExitCode::usage, "{} tokens are more than the model's {}",
                length, longest);

  // What computes and communicates: matrix products, and communicators of the process grid.
  const grid::ProcessGrid grid(source.config.grid.data, source.config.grid.tensor);
  engine::Machinery machinery(source.config, session.threads(), grid);

  // Memory for one sequence is measured, compared with what is free, and allocated once.
  const model::DecoderShape shape{.sequences = 1, .positions = length, .rows = length};
  const auto decoder = infer::load_decoder(source, shape, machinery, session.node_size());

  // One pass over the prompt: the logits after its last token.
  const std::span<const float> logits = decoder->read(0, 0, prompt);
  const auto best = std::ranges::max_element(logits) - logits.begin();
  if (world.is_root()) std::cout << best << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: next_token FOLDER TOKEN [TOKEN ...]\n";
    return static_cast<int>(ExitCode::usage);
  }
  try {
    print_next_token(argc, argv);
  } catch (const Error& error) {
    std::cerr << "next_token: " << error.what() << '\n';
    return runtime::ended(static_cast<int>(error.code()));
  }
  return runtime::ended(static_cast<int>(ExitCode::done));
}
