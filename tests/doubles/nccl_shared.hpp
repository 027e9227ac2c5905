// Memory that a communicator's ranks share in the stand-in for NCCL. A thread reads it without a
// call of MPI. It therefore notices a lost rank and does not wait for it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace kzero::doubles {

inline constexpr int max_ranks = 8;

/// An operation as a rank enqueued it. All ranks of a collective, and both ends of a message, have
/// to agree on it.
struct Header {
  /// How many operations of a communicator a rank has enqueued with each other rank.
  struct Count {
    std::int64_t communicator = 0;
    int rank = 0;
    std::array<std::uint64_t, max_ranks> with{};
  };

  int kind = 0, type = 0, reduction = 0;
  std::uint64_t elements = 0;
  int counts = 0;
  std::array<Count, 12> before{};  // of this rank's communicators
};

/// Says in what two headers differ; empty if the operations may meet.
std::string difference(const Header& mine, const Header& theirs);

class SharedRanks {
 public:
  /// Opens the block of this name for `ranks` ranks, or makes it. Not collective.
  SharedRanks(std::string name, int ranks, int rank);
  ~SharedRanks();
  SharedRanks(const SharedRanks&) = delete;
  SharedRanks& operator=(const SharedRanks&) = delete;

  /// Removes the name, once every rank has opened the block.
  void unlink() const;

  /// A rank that aborted the communicator; -1: none.
  int aborted() const;
  void abort();

  /// Waits for every rank to arrive here as often as this one has. Returns the rank that it waits
  /// for in vain, because one aborted or `patience` is over; -1: all have come.
  int meet(std::chrono::duration<double> patience);

  /// As meet(), and leaves each rank's header in `all`.
  int meet(const Header& mine, std::chrono::duration<double> patience, Header* all);

 private:
  struct Slot {
    std::atomic<std::uint64_t> arrived;
    std::atomic<int> is_aborted;
    std::array<Header, 2> headers;  // of this meeting and the one before
  };

  std::string name_;
  int ranks_, rank_;
  Slot* slots_ = nullptr;
};

}  // namespace kzero::doubles
