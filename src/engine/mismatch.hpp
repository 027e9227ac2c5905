// The failure of a run that computed the same thing twice with different results.
#pragma once

#include <string>

#include "grid/group.hpp"

namespace kzero::engine {

/// Ends a run cleanly, without a checkpoint of the step. Every rank throws it at the same point.
class Mismatch : public grid::AgreedError {
 public:
  /// `reason` is the reason in the end record: "verification" or "replay".
  Mismatch(std::string reason, const std::string& text)
      : AgreedError(ExitCode::other, text), reason_(std::move(reason)) {}

  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace kzero::engine
