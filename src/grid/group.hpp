// A group of ranks and its control messages: agreement, small gathers, barriers. Control messages
// are a few words per step at most. Data that grows with the model is sent and counted by comm/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/types.hpp"
#include "grid/mpi_handle.hpp"
#include "grid/node_shape.hpp"

namespace kzero::grid {

/// An Error that every rank of the launch throws at the same point, so that all can shut down in
/// order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Owns one MPI communicator. Every function except rank() and size() is collective over the group.
class Group {
 public:
  /// Takes ownership of `comm`, an MPI_Comm. `name` identifies the group in messages and the
  /// traffic ledger.
  Group(MpiHandle comm, std::string name);
  ~Group();
  Group(Group&& other) noexcept;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  Group& operator=(Group&&) = delete;

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }
  MpiHandle handle() const { return comm_; }
  /// Converts a rank of this group to its rank in the launch.
  int launch_rank(int rank) const { return launch_ranks_[rank]; }

  /// Sets the node of every rank of the group. Without this call, all are on one node.
  void set_nodes(std::vector<int> node_of, const NodeShape& shape) {
    node_of_ = std::move(node_of);
    shape_ = shape;
  }
  const NodeShape& shape() const { return shape_; }
  /// Returns whether a message to a rank of the group leaves this rank's node.
  bool leaves_node(int rank) const { return node_of_[rank] != node_of_[rank_]; }

  /// The node of a rank of the group.
  int node_of(int rank) const { return node_of_[rank]; }

  /// Splits the group into the ranks that pass the same `color`, in the same order, or in that of
  /// `key` if it is given.
  Group part(Index color, std::string name, std::optional<Index> key = {}) const;

  void barrier() const;

  /// Returns the sum over the ranks, added in rank order, with the same bits on every rank.
  double sum(double mine) const;
  Index max(Index mine) const;
  Index min(Index mine) const;

  /// Replaces each number by its sum over the ranks, modulo 2^64.
  void sum(std::span<std::uint64_t> numbers) const;

  /// Returns every rank's value, in rank order, on every rank.
  std::vector<double> all_gather(double mine) const;
  /// Returns every rank's values in rank order. All ranks must pass the same number of values.
  std::vector<double> all_gather(const std::vector<double>& mine) const;

  /// Returns every rank's text, in rank order, on the root; empty elsewhere.
  std::vector<std::string> gather(const std::string& mine) const;

  /// Returns the root's text on every rank.
  std::string broadcast(const std::string& text) const;

  /// Ends a step that may fail on some ranks only; `problem` is empty on a rank that did not fail.
  /// If any rank reports a problem, every rank throws AgreedError(code) with the text of the lowest
  /// such rank. On several nodes the text also names that rank and its node, unless every rank
  /// reports a problem or the code is that of a bad deck.
  void agree(const std::string& problem, int exit_code) const;

 private:
  std::string broadcast(const std::string& text, int from) const;
  std::string place_of(int failing, bool i_failed) const;

  MpiHandle comm_;
  std::string name_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<int> launch_ranks_;
  std::vector<int> node_of_;  // [size]
  NodeShape shape_;
};

}  // namespace kzero::grid
