// Passes a file descriptor to other processes of the same user on the same node, over a Unix socket
// in Linux's abstract namespace. No file is involved, so nothing is left behind.
#pragma once

#include <chrono>
#include <string>

#include "base/descriptor.hpp"
#include "base/types.hpp"

namespace kzero::runtime {

class DescriptorSender {
 public:
  /// Opens a socket with a name that the system chooses. Throws Error(other) if it refuses.
  DescriptorSender();

  /// The name that receivers pass to receive_descriptor().
  const std::string& name() const { return name_; }

  /// Sends a descriptor to as many receivers. Processes of other users get nothing. Throws
  /// Error(other) if the receivers do not come within `patience`.
  void send(int descriptor, Index receivers, std::chrono::seconds patience) const;

 private:
  Descriptor socket_;
  std::string name_;
};

/// Returns the descriptor that the sender of this name sends. The caller closes it. Throws
/// Error(other) if the sender cannot be reached or sends nothing within `patience`.
int receive_descriptor(const std::string& name, std::chrono::seconds patience);

}  // namespace kzero::runtime
