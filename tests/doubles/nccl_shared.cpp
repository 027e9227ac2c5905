#include "doubles/nccl_shared.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace kzero::doubles {

std::string difference(const Header& mine, const Header& theirs) {
  if (mine.kind != theirs.kind || mine.reduction != theirs.reduction) return "operations differ";
  if (mine.type != theirs.type)
    return fmt::format("types differ: {} and {}", mine.type, theirs.type);
  if (mine.elements != theirs.elements)
    return fmt::format("counts differ: {} and {}", mine.elements, theirs.elements);
  for (int i = 0; i < mine.counts; ++i) {
    for (int j = 0; j < theirs.counts; ++j) {
      const Header::Count &here = mine.before[i], &there = theirs.before[j];
      if (here.communicator == there.communicator && here.with[there.rank] != there.with[here.rank])
        return "the ranks' calls are in different orders";
    }
  }
  return {};
}

SharedRanks::SharedRanks(std::string name, int ranks, int rank)
    : name_(std::move(name)), ranks_(ranks), rank_(rank) {
  const int file = ::shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
  const std::size_t bytes = sizeof(Slot) * static_cast<std::size_t>(ranks);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0)
    throw std::runtime_error("no shared memory for the stand-in for NCCL");
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (block == MAP_FAILED) throw std::runtime_error("no shared memory for the stand-in for NCCL");
  slots_ = static_cast<Slot*>(block);  // zeros, which are valid atomics
}

SharedRanks::~SharedRanks() { ::munmap(slots_, sizeof(Slot) * static_cast<std::size_t>(ranks_)); }

void SharedRanks::unlink() const { ::shm_unlink(name_.c_str()); }

int SharedRanks::aborted() const {
  for (int r = 0; r < ranks_; ++r) {
    if (slots_[r].is_aborted != 0) return r;
  }
  return -1;
}

void SharedRanks::abort() { slots_[rank_].is_aborted = 1; }

int SharedRanks::meet(std::chrono::duration<double> patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const std::uint64_t round = ++slots_[rank_].arrived;
  for (int r = 0; r < ranks_; ++r) {
    while (slots_[r].arrived < round) {
      if (slots_[r].is_aborted != 0 || std::chrono::steady_clock::now() > end) return r;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return -1;
}

// A rank that is here again has read what all left in the round before.
int SharedRanks::meet(const Header& mine, std::chrono::duration<double> patience, Header* all) {
  const std::uint64_t place = (slots_[rank_].arrived + 1) % 2;
  slots_[rank_].headers[place] = mine;
  const int missing = meet(patience);
  for (int r = 0; r < ranks_ && missing < 0; ++r) all[r] = slots_[r].headers[place];
  return missing;
}

}  // namespace kzero::doubles
