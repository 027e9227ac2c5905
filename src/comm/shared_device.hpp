// Ranks that compute on one device.
#pragma once

#include <string>

#include "grid/group.hpp"

namespace kzero::comm {

/// Names two ranks of the group that compute on one device: "ranks 0 and 1 share device
/// 0000:18:00.0 of node3". Empty if no ranks do, and where the back end cannot tell devices apart.
/// As for NCCL, ranks whose NCCL_HOSTID differ are on different hosts, even if they share a device.
/// The same text on every rank. Collective over the group.
std::string shared_device(const grid::Group& group);

}  // namespace kzero::comm
