#include "base/checksum.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace kzero {

namespace {

std::vector<std::byte> pattern(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  return bytes;
}

TEST(Checksum, OfNothingIsThePublishedOne) {
  EXPECT_EQ(format_checksum(checksum({})), "2d06800538d394c2");  // XXH3_64bits of no bytes, seed 0
}

TEST(Checksum, NoticesOneFlippedBit) {
  auto bytes = pattern(1000);
  const auto before = checksum(bytes);
  bytes[617] ^= std::byte{4};
  EXPECT_NE(checksum(bytes), before);
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  for (const std::size_t size :
       {0UL, 1UL, 4194303UL, 4194304UL, 9000001UL}) {  // around the read size
    const auto bytes = pattern(size);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(size));
    EXPECT_EQ(checksum_of_file(path), checksum(bytes)) << size;
  }
}

TEST(Checksum, OfAMissingFileIsAnErrorThatNamesIt) {
  const tests::TemporaryFolder folder;
  try {
    checksum_of_file(folder.path() / "absent.h5");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_NE(std::string(error.what()).find("absent.h5"), std::string::npos);
  }
}

}  // namespace

}  // namespace kzero
