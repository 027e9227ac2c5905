// Memory that several processes of a node share. The implementation is in a higher folder, because
// memory/ knows nothing of messages (comm/node_window.hpp).
#pragma once

#include <cstddef>

namespace kzero::memory {

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  /// The first byte. Zero until a process writes it.
  virtual std::byte* data() const = 0;

  /// Returns when every process has called. Each then sees what the others wrote before their
  /// calls. Collective over the processes.
  virtual void meet() const = 0;
};

}  // namespace kzero::memory
