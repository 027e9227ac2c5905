// Asynchronous signals, kept out of every thread that computes. Generated code of matrix libraries
// uses the stack pointer for data, and the kernel writes a handler's frame to wherever that points:
// a handler on such a thread corrupts memory. So all of these signals are blocked everywhere, and
// one thread takes them.
#pragma once

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

namespace kzero::runtime {

/// Signals that ask a program to stop: of the keyboard, of batch systems (each has its own for
/// "your time is nearly up"), of a limit of CPU time. SIGHUP is not among them: UCX handles it from
/// the start, so that nobody can tell whether nohup had it ignored.
inline constexpr std::array<std::pair<int, std::string_view>, 5> stop_signals{
    {{SIGTERM, "SIGTERM"},
     {SIGINT, "SIGINT"},
     {SIGUSR1, "SIGUSR1"},
     {SIGUSR2, "SIGUSR2"},
     {SIGXCPU, "SIGXCPU"}}};

/// "SIGTERM"; empty for other than stop signals.
std::string_view signal_name(int signal);

/// Blocks asynchronous signals in this thread and all that it starts from now on, and starts the
/// thread that takes them: stop signals as said below; others that would end a program (a timer's,
/// say) are dropped; SIGQUIT keeps its action. The same thread ends a process whose launcher is
/// gone. A timer's signal that a profiler handles already stays with it, on an alternate stack.
/// Writing beyond a file-size limit becomes an error of the write. To be called once, first in
/// main: libraries start threads.
void take_signals();

/// Stop signals are remembered from now on; before, they end the process as if nobody took them. A
/// closed pipe or terminal on standard output no longer ends the process either.
void note_stop_signals();

/// The first stop signal that was noted; 0: none.
int noted_stop_signal();

/// All is done that had to be: a stop signal from now on ends the process with this exit code,
/// within two seconds should it hang on its way out.
void leave_on_signals(int exit_code);

/// Undoes note_stop_signals(), unless leave_on_signals() has done so.
void forget_stop_signals();

/// Handlers that libraries have installed run on alternate stacks from now on, of this thread and
/// of Kokkos' host threads. For after these libraries have started.
void move_handlers_to_alternate_stacks();

}  // namespace kzero::runtime
