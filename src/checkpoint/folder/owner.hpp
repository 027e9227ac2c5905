// The owner of a folder of checkpoints: a process, described so that others on any machine can tell
// whether it still lives. Does not know the lock file.
#pragma once

#include <ctime>
#include <string>

#include "base/types.hpp"

namespace kzero::checkpoint {

struct Owner {
  std::string host;
  Index pid = 0;
  std::string start;    // of the process, in ticks since the boot: a pid may be reused
  std::string machine;  // boot and process namespace, within which pid and start are unique
  std::string system;   // the installed system, the same after a boot; empty if it has no number
  std::string user;
  std::string job;      // KZERO_JOB or Slurm's number; empty outside of a job
  std::string restart;  // how often Slurm has resubmitted that job
  std::string launch;   // KZERO_LAUNCH: how often the job has launched the program before
  std::string since;    // UTC
  std::string token;    // unique to this owner
};

Owner this_process();

/// Formats an owner as one line per field. The text is equal only for the same owner.
std::string pack(const Owner& owner);

/// Parses pack()'s text. Missing fields stay empty. Unprintable characters are escaped.
Owner unpack_owner(const std::string& text);

/// Describes an owner as "process 17 on node7, user ann, job 4711, since ...".
std::string describe(const Owner& owner);

enum class Life { running, gone, unknown };

/// Returns what `observer`, which is this process, can tell about another at once. `last_sign` is
/// the time of the other's last sign of life. A process of another machine is gone if it belongs to
/// an earlier start of the observer's job, or to an earlier launch within the job. The batch system
/// or the job script has ended those. A process of this system is gone if the system has booted
/// since its last sign. Otherwise it is unknown.
Life life_of(const Owner& owner, const Owner& observer, std::time_t last_sign);

}  // namespace kzero::checkpoint
