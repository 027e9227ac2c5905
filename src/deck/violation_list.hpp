// The base of the classes of rules: it collects broken rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

class ViolationList {
 protected:
  void refuse_if(bool is_broken, std::vector<std::string> keys, std::string text) {
    if (is_broken) violations_.push_back({std::move(keys), std::move(text)});
  }

  std::vector<Violation> violations_;
};

}  // namespace kzero::deck
