// Watches over the other ranks of a launch: for waits that last too long, and for nodes that have
// fallen silent. Both end the launch with a message.
#pragma once

#include <memory>

#include "grid/nodes.hpp"
#include "runtime/heartbeat.hpp"
#include "runtime/session.hpp"
#include "runtime/watchdog.hpp"

namespace kzero::comm {

class LaunchWatch {
 public:
  /// `longest_wait` is run.watchdog and `silence` run.heartbeat, in seconds; 0 turns either off.
  /// A launch on a single node runs without a heartbeat, because its launcher notices a lost rank.
  /// Ends the session's limit on the start. Collective over `world`, all ranks of the launch.
  LaunchWatch(const runtime::Session& session, const grid::Group& world, double longest_wait,
              double silence);

  const grid::Nodes& nodes() const { return nodes_; }

 private:
  grid::Nodes nodes_;
  runtime::Watchdog watchdog_;
  std::unique_ptr<runtime::Heartbeat> heartbeat_;
};

}  // namespace kzero::comm
