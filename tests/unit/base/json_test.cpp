#include "base/json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kzero {
namespace {

TEST(Json, IsReadToABoundedDepth) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(64)).is_array());
  EXPECT_TRUE(parse_json(nested(65)).is_discarded());
  EXPECT_TRUE(parse_json("[\"[[\\\"" + std::string(100, '[') + "\"]").is_array());
}

TEST(Json, OfMillionsOfBracketsIsDiscarded) {
  constexpr std::size_t depth = 10'000'000;
  EXPECT_TRUE(parse_json(std::string(depth, '[')).is_discarded());
  EXPECT_TRUE(parse_json(std::string(depth, '[') + std::string(depth, ']')).is_discarded());
  EXPECT_TRUE(parse_json(std::string(depth, ']') + std::string(depth, '[')).is_discarded());
}

TEST(Json, IsDiscardedIfItIsNone) {
  for (const char* text : {"", "{", "[1,]", "nul", "\"\xff\""}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
  }
}

TEST(Json, IsShownShort) {
  EXPECT_EQ(json_shown(nlohmann::json{{"a", {1, 2}}}), R"({"a":[1,2]})");
  EXPECT_EQ(json_shown("\u00e9\n"), R"("\u00e9\n")");
  EXPECT_EQ(json_shown(std::string(100, 'x')).size(), 63U);
}

}  // namespace
}  // namespace kzero
