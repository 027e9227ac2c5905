/* Preloaded into the ranks of a test. Debian's MPICH 4.0.2 waits in UCX without yielding the core. With more ranks than
 * cores, each message therefore costs a scheduler time slice. This progress call yields after several idle polls. It is
 * useless if ranks own their cores. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

enum { polls_before_yield = 32 };

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*);
  static __thread int idle_polls;
  if (!progress) progress = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  idle_polls = events ? 0 : idle_polls + 1;
  if (idle_polls >= polls_before_yield) {
    idle_polls = 0;
    sched_yield();
  }
  return events;
}
