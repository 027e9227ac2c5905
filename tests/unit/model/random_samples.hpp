// A fixture with eight windows of 13 random tokens below 101.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "data/sampler.hpp"
#include "support/numbers.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {

class RandomSamples : public testing::Test {
 protected:
  RandomSamples() {
    const auto path = folder.path() / "tokens";
    std::string tokens;
    for (const double x : numbers<float>(8 * 13 + 1, 5))
      tokens += static_cast<char>(std::abs(x) * 101);
    std::ofstream(path, std::ios::binary) << tokens;
    const auto stream = std::make_shared<data::TokenStream>(std::vector{path.string()},
                                                            deck::DataFormat::bytes, 256);
    sampler = std::make_unique<data::Sampler>(stream, 13, 0, 8, deck::DataOrder::sequential, 0);
  }

  TemporaryFolder folder;
  std::unique_ptr<data::Sampler> sampler;
};

}  // namespace kzero::tests
