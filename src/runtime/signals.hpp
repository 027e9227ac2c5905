// Keeps asynchronous signals away from every thread that computes. Generated code of matrix
// libraries uses the stack pointer for data, and the kernel writes a handler's frame to wherever it
// points: a handler on such a thread corrupts memory. All of these signals are therefore blocked in
// every thread, and one dedicated thread receives them.
#pragma once

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

namespace kzero::runtime {

/// The signals that ask a program to stop: from the keyboard, from batch systems (each has its own
/// for "your time is nearly up"), from a CPU time limit. SIGHUP is not one of them: a training
/// continues when the terminal that started it is closed.
inline constexpr std::array<std::pair<int, std::string_view>, 5> stop_signals{
    {{SIGTERM, "SIGTERM"},
     {SIGINT, "SIGINT"},
     {SIGUSR1, "SIGUSR1"},
     {SIGUSR2, "SIGUSR2"},
     {SIGXCPU, "SIGXCPU"}}};

/// The signal's name, "SIGTERM"; empty for any signal that is not a stop signal.
std::string_view signal_name(int signal);

/// Blocks asynchronous signals in this thread and in all threads that it starts from now on, and
/// starts the thread that receives them. Stop signals are handled as described below. Other signals
/// that would end a program (a timer's, for example) are dropped; SIGQUIT keeps its action. The
/// same thread ends a process whose launcher is gone. A timer signal that a profiler already
/// handles stays with the profiler, on an alternate stack. Writing beyond a file-size limit becomes
/// an error of the write. Call this once, first in main, before libraries start threads.
void take_signals();

/// From now on SIGHUP ends the process by its default action, unless it was ignored when the
/// process was started (by nohup, for example). Before this call it is dropped. For work that
/// becomes useless when the terminal is lost.
void end_on_hangup();

/// Records stop signals from now on; before, they end the process by their default action. From now
/// on a closed pipe or terminal on standard output does not end the process either. Ctrl-C at a
/// terminal prints `answer`, a line with its end, which is not copied.
void note_stop_signals(const char* answer);

/// The first stop signal recorded; 0 if there was none.
int noted_stop_signal();

/// From now on a stop signal ends the process with this exit code, within two seconds even if
/// shutdown hangs. A launcher that is gone does not change the code. Call this once all work is
/// complete or given up.
void leave_on_signals(int exit_code);

/// The exit code given to leave_on_signals(); 0 before.
int code_on_leaving();

/// Undoes note_stop_signals(), unless leave_on_signals() was called.
void forget_stop_signals();

/// Moves the handlers that libraries have installed to alternate stacks, in this thread and in
/// Kokkos' host threads, except that of SIGXFSZ, which stays ignored. Call it after these libraries
/// have started.
void move_handlers_to_alternate_stacks();

// Whether the process was started with SIGHUP ignored, as nohup does. UCX, a library used by MPI,
// replaces that setting by its own handler before main begins.

/// Returns whether SIGHUP was ignored before any library could change that.
bool started_without_hangup();

}  // namespace kzero::runtime
