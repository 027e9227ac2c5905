// What tests ask of the stand-in for a device: streams whose library calls may come late.
#pragma once

#include <atomic>
#include <functional>

namespace kzero::doubles {

/// When a call that a library enqueues on a stream runs: at once, or as late as the events that
/// other streams hold allow. Whatever is right on a device is right with either.
enum class Calls { at_once, late };
void set_calls(Calls when);

/// Enqueues a library's call on the stream.
void enqueue(void* stream, std::function<void()> call);

/// Calls about events by threads that had not chosen the process's device.
extern std::atomic<int> calls_elsewhere;

/// The name that device_name() gives; empty: one for each rank.
void set_device_name(const char* name);

}  // namespace kzero::doubles
