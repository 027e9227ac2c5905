// Who holds a folder of checkpoints: a process, named so that others, on this machine or another,
// can tell whether it still lives. Knows nothing of the file that says so.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::checkpoint {

struct Owner {
  std::string host;
  Index pid = 0;
  std::string start;    // of the process, in ticks since the boot: a pid may be used again
  std::string machine;  // boot and process namespace, within which pid and start mean something
  std::string user;
  std::string job;      // Slurm's number; empty outside of a job
  std::string restart;  // how often Slurm has submitted that job again
  std::string since;    // UTC
  std::string token;    // of this one owner
};

/// This process as a new owner.
Owner this_process();

/// A line for each field; the same for the same owner only.
std::string pack(const Owner& owner);

/// From pack()'s text. Fields that are missing stay empty; what a terminal should not see is
/// spelled out.
Owner unpack_owner(const std::string& text);

/// "process 17 on node7, user ann, job 4711, since ..."
std::string describe(const Owner& owner);

enum class Life { running, gone, unknown };

/// What `observer`, which is this process, can say of another at once. A process of another machine
/// is gone if it belongs to an earlier run of the observer's job, and unknown otherwise.
Life life_of(const Owner& owner, const Owner& observer);

}  // namespace kzero::checkpoint
