#include "data/log_prob_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

const LogProbs of_three{7, 9, {-1.5, 0, -1e300}};

class FilesOfLogProbs : public TokenFiles {
 protected:
  std::string write(const std::vector<std::byte>& bytes) const {
    std::ofstream file(path("p"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return path("p");
  }

  void expect_refusal(const std::string& part,
                      const std::function<void(std::vector<std::byte>&)>& change) const {
    std::vector<std::byte> bytes = log_prob_bytes(of_three);
    change(bytes);
    try {
      read_log_probs(write(bytes));
      ADD_FAILURE() << "expected: " << part;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ExitCode::files);
      EXPECT_EQ(text.find(path("p") + ": "), 0U) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
};

TEST_F(FilesOfLogProbs, AreReadAsTheyWereWritten) {
  const LogProbs found = read_log_probs(write(log_prob_bytes(of_three)));
  EXPECT_EQ(found.model, of_three.model);
  EXPECT_EQ(found.documents, of_three.documents);
  EXPECT_EQ(found.values, of_three.values);
}

TEST_F(FilesOfLogProbs, AreRefusedIfDamaged) {
  expect_refusal("is not a file of log-probabilities", [](auto& b) { b[0] = std::byte{'k'}; });
  expect_refusal("is not a file of log-probabilities", [](auto& b) { b.resize(255); });
  expect_refusal("is version 2", [](auto& b) { b[8] = std::byte{2}; });
  expect_refusal("counts 3 documents", [](auto& b) { b.resize(b.size() - 8); });
  expect_refusal("counts 3 documents", [](auto& b) { b.resize(b.size() - 1); });
  expect_refusal("counts 3 documents", [](auto& b) { b.push_back({}); });
  expect_refusal("are damaged", [](auto& b) { b[256] ^= std::byte{1}; });
  expect_refusal("are damaged", [](auto& b) { b = log_prob_bytes({7, 9, {-1, std::nan("")}}); });
}

}  // namespace
}  // namespace kzero::data
