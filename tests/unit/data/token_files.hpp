// Token files for tests: written into their own folder, read back, refused.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "data/token_stream.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::data {

using deck::DataFormat;

class TokenFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }

  std::string write_text(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  /// Writes these first words of a header, and tokens of 16 or 32 bits.
  template <class Stored = std::uint16_t>
  std::string write_llmc(const std::string& name, const std::vector<Stored>& tokens,
                         std::array<std::int32_t, 3> head) const {
    std::array<std::int32_t, 256> header{};
    std::copy(head.begin(), head.end(), header.begin());
    std::ofstream file(path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), sizeof header);
    file.write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(std::span(tokens).size_bytes()));
    return path(name);
  }

  template <class Stored = std::uint16_t>
  std::string write_llmc(const std::string& name, const std::vector<Stored>& tokens) const {
    const auto count = static_cast<std::int32_t>(tokens.size());
    const bool is_wide = sizeof(Stored) == 4;
    return write_llmc<Stored>(name, tokens,
                              {is_wide ? 20240801 : 20240520, is_wide ? 7 : 1, count});
  }

  static std::string error_of(auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::files);
      return error.what();
    }
    return "no error";
  }

  static std::vector<Token> all(const TokenStream& stream) {
    std::vector<Token> tokens(static_cast<std::size_t>(stream.size()));
    stream.read(0, stream.size(), tokens.data());
    return tokens;
  }

  tests::TemporaryFolder folder_;
};

}  // namespace kzero::data
