// Compiled without ThreadSanitizer's instructions.
#include "stream_order/omissions.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "stream_order/hidden_lock.hpp"

extern "C" const char __ehdr_start;  // where the program is, from the linker

namespace kzero::stream_order {

namespace {

bool has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool is_named(const char* call, const std::string& name) {
  static HiddenLock lock;
  static std::set<std::string> known;
  static const bool lists = std::getenv("KZERO_LIST_ORDER") != nullptr;
  static const char* const left_out = std::getenv("KZERO_LEFT_OUT");
  if (lists) {
    const std::lock_guard guard(lock);
    if (known.insert(name).second) std::fprintf(stderr, "order: %s %s\n", call, name.c_str());
  }
  return left_out != nullptr && has(left_out, name);
}

}  // namespace

bool is_left_out(const char* call, const void* caller) {
  return is_named(call, fmt::format("{:#x}", static_cast<const char*>(caller) - &__ehdr_start));
}

bool is_left_out(const char* fence) { return is_named("fence", fence); }

}  // namespace kzero::stream_order
