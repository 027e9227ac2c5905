#include "app/node_problems.hpp"

#include <gtest/gtest.h>

namespace kzero::app {
namespace {

std::string rank(const std::string& host, const std::vector<ProblemList::Problem>& problems) {
  ProblemList list;
  for (const auto& [subject, text] : problems) list.add(subject, text);
  return pack(host, list);
}

const ProblemList::Problem data{"data.files", "data.files: a.bin is missing"};
const ProblemList::Problem disk{"checkpoint.folder", "checkpoint.folder: c cannot be written"};

TEST(NodeProblems, WhatEveryNodeHasNamesNone) {
  EXPECT_EQ(merged({rank("n1", {data}), rank("n1", {}), rank("n2", {data})}).text(), data.text);
  EXPECT_EQ(merged({rank("n1", {data}), rank("n1", {})}).text(), data.text) << "one node";
}

TEST(NodeProblems, WhatSomeNodesHaveNamesThem) {
  EXPECT_EQ(
      merged({rank("n1", {data}), rank("n2", {data, disk}), rank("n2", {disk}), rank("n3", {data})})
          .text(),
      data.text + "\n" + disk.text + " (found on n2)");
  EXPECT_EQ(merged({rank("n1", {}), rank("n2", {data}), rank("n3", {data})}).text(),
            data.text + " (found on n2, n3)");
}

TEST(NodeProblems, ManyNodesAreCounted) {
  std::vector<std::string> ranks{rank("n0", {})};
  for (int i = 1; i <= 5; ++i) ranks.push_back(rank("n" + std::to_string(i), {data}));
  EXPECT_EQ(merged(ranks).text(), data.text + " (found on n1, n2, n3 and 2 more nodes)");
}

TEST(NodeProblems, WithoutProblemsThereAreNone) {
  EXPECT_TRUE(merged({rank("n1", {}), rank("n2", {})}).empty());
}

}  // namespace
}  // namespace kzero::app
