/* Preloaded into the ranks of a test: Debian's MPICH 4.0.2 waits in UCX without ever giving up the core, so that with more
 * ranks than cores each message costs a slice of the scheduler. Here UCX's progress call yields when it has had nothing
 * to do for a while. Where ranks own their cores this is of no use. */
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
