// The default actions of some signals while an object lives. A shell without job control starts
// programs in the background with SIGINT and SIGQUIT ignored, and kzero leaves ignored signals
// ignored: a test that sends such a signal would wait for an effect in vain.
#pragma once

#include <csignal>
#include <map>

namespace kzero::tests {

class DefaultActions {
 public:
  DefaultActions() {
    for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU})
      before_[signal] = std::signal(signal, SIG_DFL);
  }
  ~DefaultActions() {
    for (const auto& [signal, action] : before_) std::signal(signal, action);
  }
  DefaultActions(const DefaultActions&) = delete;
  DefaultActions& operator=(const DefaultActions&) = delete;

 private:
  std::map<int, void (*)(int)> before_;
};

}  // namespace kzero::tests
