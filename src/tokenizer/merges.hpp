// The merges of byte-level BPE (Sennrich, Haddow, Birch, arXiv 1508.07909). In a word, the
// neighbouring pair that is first in the list of merges becomes one token. This repeats until no
// pair is in the list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "tokenizer/definition.hpp"

namespace kzero::tokenizer {

class Merges {
 public:
  explicit Merges(std::span<const Merge> merges);

  /// Memory of apply(), for one thread.
  struct Scratch {
    struct Symbol {
      Token token;
      std::int32_t previous, next;  // neighbours; -1: none
      bool is_gone;
    };
    struct Candidate {
      std::uint64_t order;  // rank, then position
      Token merged;
      bool operator>(const Candidate& other) const { return order > other.order; }
    };
    std::vector<Symbol> symbols{};
    std::vector<Candidate> heap{};
  };

  /// Appends the tokens of a word to `to`. `word` is the tokens of its bytes, fewer than 2^31. O(n
  /// log n) for n bytes.
  void apply(std::span<const Token> word, std::vector<Token>& to, Scratch& scratch) const;

 private:
  struct Slot {
    std::uint64_t pair;
    std::uint32_t rank;
    Token merged;
  };

  const Slot* find(Token left, Token right) const;
  void consider(Scratch& scratch, std::int32_t position) const;

  std::vector<Slot> slots_;  // a hash table with open addressing; its size is a power of two
  int shift_;
};

}  // namespace kzero::tokenizer
