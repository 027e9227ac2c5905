// A folder for each test, hand-made safetensors files, and the model of a reference case.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "base/error.hpp"
#include "checkpoint/search.hpp"
#include "convert/safetensors.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"

namespace kzero::convert {

namespace fs = std::filesystem;

inline grid::Group own_group(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  return {copy, "world"};
}

/// Each rank has a folder of its own, removed with the object.
class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::random_device seed;
    folder = fs::temp_directory_path() /
             ("kzero_convert_" + std::to_string(seed()) + std::to_string(seed()));
    fs::create_directories(folder);
  }
  ~FolderTest() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  fs::path folder;
};

inline void store(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A file with this header and so many bytes of zeros.
inline std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\0');
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The text of the Error that f throws; fails the test if it throws none or one of another code.
template <class F>
std::string error_of(ExitCode code, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

/// The model of the reference case "even".
inline deck::Model even_model() {
  deck::Model model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.sequence = 32;
  model.vocab = 256;
  return model;
}

}  // namespace kzero::convert
