#include "runtime/build_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero::runtime {
namespace {

TEST(LoadedLibraries, have_the_ids_that_the_linker_wrote) {
  const auto libraries = loaded_libraries();
  const auto find = [&](const std::string& start) {
    return std::ranges::find_if(
        libraries, [&](const LoadedLibrary& library) { return library.name.starts_with(start); });
  };
  ASSERT_FALSE(libraries.empty());
  EXPECT_EQ(libraries.front().name, "") << "the program";
  const auto c = find("libc.so");
  ASSERT_NE(c, libraries.end());
  EXPECT_EQ(c->build.size(), 40U) << "an SHA-1 in hexadecimal digits: " << c->build;
  EXPECT_EQ(c->build.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace kzero::runtime
