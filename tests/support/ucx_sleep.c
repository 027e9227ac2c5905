/* Preloaded into the ranks of a test. Debian's MPICH 4.0.2 waits in UCX without giving up the core. With more ranks than
 * cores, each message therefore costs a scheduler time slice. This progress call sleeps after several idle polls, for about
 * 50 us, the slack of Linux' timers. Beside a build, sched_yield would cost a slice of the build each time, whatever its
 * priority (8 ranks on 2 cores: 47 s instead of 5). It is useless if ranks own their cores. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

enum { polls_before_sleep = 32 };

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*);
  static __thread int idle_polls;
  if (!progress) progress = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  idle_polls = events ? 0 : idle_polls + 1;
  if (idle_polls >= polls_before_sleep) {
    idle_polls = 0;
    usleep(1);
  }
  return events;
}
