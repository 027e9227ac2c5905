// A folder for each test, hand-made safetensors files, and the model of a reference case.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <filesystem>
#include <random>
#include <string>

#include "base/error.hpp"
#include "checkpoint/folder/search.hpp"
#include "convert/safetensors.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "support/error_text.hpp"
#include "support/stored_file.hpp"

namespace kzero::convert {

namespace fs = std::filesystem;
using tests::contains;
using tests::error_of;
using tests::store;

inline grid::Group own_group(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  return {copy, "world"};
}

/// Each rank has its own folder, which is removed with the object.
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

/// A file with this header and `data_bytes` bytes of zeros.
inline std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\0');
}

/// The model of the reference case "even".
inline deck::Model even_model() {
  deck::Model model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.sequence = 32;
  model.vocab = 256;
  model.feed_forward = 256;
  return model;
}

}  // namespace kzero::convert
