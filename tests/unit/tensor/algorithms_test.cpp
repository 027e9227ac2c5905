#include "tensor/algorithms.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace kzero::tensor {

namespace {

AlgorithmTable example() {
  AlgorithmTable table{"NVIDIA H200", "cuBLASLt 130100"};
  table.products["bf16 8 x 8 x 8 NN to bf16"] = {{66, 20, 1, 0, 0, 3, 36, 0, 2}, 12, 0.25, 0.125};
  table.products["bf16 8 x 8 x 8 TN to fp32, accumulated"] = {
      {2147483647, 4294967295, 4, 2, 1, 4294967295, 36, 65535, 65535}, 1, 1.5, 0.5};
  return table;
}

std::string example_text() { return as_toml(example(), "two products"); }

/// The text with its first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = example_text();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem_of(const std::string& text) {
  try {
    read_algorithms({"t.toml", text});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "none";
}

TEST(AlgorithmTable, ReadsWhatItWrites) {
  const AlgorithmTable table = read_algorithms({"t.toml", example_text()});
  EXPECT_EQ(table.device, "NVIDIA H200");
  EXPECT_EQ(table.library, "cuBLASLt 130100");
  ASSERT_EQ(table.products.size(), 2U);
  for (const auto& [product, entry] : example().products) {
    const TableEntry& read = table.products.at(product);
    EXPECT_EQ(read.algorithm, entry.algorithm);
    EXPECT_EQ(read.calls, entry.calls);
    EXPECT_EQ(read.heuristic_ms, entry.heuristic_ms);
    EXPECT_EQ(read.ms, entry.ms);
  }
  EXPECT_EQ(as_toml(table, "two products"), example_text());
}

TEST(AlgorithmTable, WithoutProductsIsATable) {
  EXPECT_EQ(problem_of("device = \"a\"\nlibrary = \"b\"\n"), "none");
}

TEST(AlgorithmTable, RefusesBadFiles) {
  const std::pair<std::string, std::string> cases[] = {
      {"device = 1", "t.toml:1:10: key 'device' must be 1 to 200 plain characters"},
      {with("device = ", "driver = "), "t.toml:2:1: key 'driver' is not known; the keys here are"},
      {with("device = \"NVIDIA H200\"\n", ""), "t.toml: key 'device' is missing"},
      {with("library = \"cuBLASLt 130100\"\n", ""), "t.toml: key 'library' is missing"},
      {with("NVIDIA", "NVIDIA\\u001b[2J"), "key 'device' must be 1 to 200 plain characters"},
      {with("bf16 8", std::string(200, 'x')), "key 'product' must be 1 to 200 plain characters"},
      {"device = \"a\"\nlibrary = \"b\"\n[product]\nid = 1\n",
       "the tables are [[product]], found [product]"},
      {example_text() + "\n[[other]]\na = 1\n", "the tables are [[product]], found [other]"},
      {with("TN to fp32, accumulated", "NN to bf16"), "NN to bf16\" is given twice"},
      {with("tile", "tiles"), "key 'tiles' is not known"},
      {with("tile = 20\n", ""), "key 'tile' is missing"},
      {with("ms = 0.2500", "ms = 0"), "key 'heuristic_ms' must be milliseconds"},
      {with("ms = 0.2500", "ms = nan"), "key 'heuristic_ms' must be milliseconds"},
      {with("calls = 12", "calls = 0"), "key 'calls' must be an integer from 1 to 1000000000"},
      {with("id = 66", "id = -1"), "key 'id' must be an integer from 0 to 2147483647, found -1"},
      {with("id = 66", "id = 2147483648"), "must be an integer from 0 to 2147483647"},
      {with("tile = 20", "tile = 4294967296"), "must be an integer from 0 to 4294967295"},
      {with("tile = 20", "tile = \"20\""), "key 'tile' must be an integer"},
      {with("stages = 36", "stages = 3.5"), "key 'stages' must be an integer"},
      {with("inner_shape = 0", "inner_shape = 65536"), "must be an integer from 0 to 65535"},
      {with("reduction = 0", "reduction = 1"), "key 'reduction' must be 0 or 2"},
      {with("reduction = 0", "reduction = 4"), "key 'reduction' must be an integer from 0 to 2"},
      {with("split_k = 1", "split_k = 2"), "split_k above 1 needs reduction = 2"},
      {with("device", "device = \"a\"\ndevice"), "t.toml:"},
      {"[[product", "t.toml:1:"},
  };
  for (const auto& [text, problem] : cases)
    EXPECT_NE(problem_of(text).find(problem), std::string::npos) << problem_of(text);
}

TEST(AlgorithmTable, HasADigestOfWhatARunUses) {
  const std::uint64_t digest = example().digest();
  EXPECT_EQ(digest, example().digest());
  const auto changed = [&](auto change) {
    AlgorithmTable table = example();
    change(table);
    return table.digest() != digest;
  };
  EXPECT_FALSE(changed([](AlgorithmTable& t) { t.products.begin()->second.ms = 9; }));
  EXPECT_TRUE(changed([](AlgorithmTable& t) { t.device += "x"; }));
  EXPECT_TRUE(changed([](AlgorithmTable& t) { t.library += "x"; }));
  EXPECT_TRUE(changed([](AlgorithmTable& t) { t.products.erase(t.products.begin()); }));
  EXPECT_TRUE(changed([](AlgorithmTable& t) { ++t.products.begin()->second.algorithm[8]; }));
}

}  // namespace

}  // namespace kzero::tensor
