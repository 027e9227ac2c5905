// Where would a restart begin? Reads folders of checkpoints from standard input, one a line, and
// answers each with
//     NAME\tNAME AFTER TIDYING\tPROBLEM
// : the checkpoint that the search finds, the one that it finds once what interrupted writes left
// is removed, both "-" for none, and the first message of the searches.
#include <fmt/ranges.h>
#include <mpi.h>
#include <sys/stat.h>

#include <iostream>
#include <map>
#include <string>

#include "base/error.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/folder/search.hpp"
#include "checkpoint/inspect.hpp"
#include "engine/stored_weights.hpp"
#include "grid/group.hpp"

namespace {

using namespace kzero;

std::string name_of(const std::optional<checkpoint::Found>& found) {
  return found ? found->path.filename().string() : "-";
}

bool verify(const std::filesystem::path& path) {
  try {
    return checkpoint::verify(path, engine::saved_parameters).empty();
  } catch (const Error&) {
    return false;
  }
}

/// The names and inodes of a checkpoint's files. The states share files of the same content.
std::map<std::string, ino_t> files_of(const std::filesystem::path& checkpoint) {
  std::map<std::string, ino_t> files;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0)
      files[entry.path().filename().string()] = status.st_ino;
  }
  return files;
}

/// Verifies what no state before this had under the same name.
bool is_sound(const std::filesystem::path& path) {
  static std::map<std::pair<std::string, std::map<std::string, ino_t>>, bool> known;
  const auto [place, is_new] = known.try_emplace({path.filename().string(), files_of(path)});
  if (is_new) place->second = verify(path);
  return place->second;
}

std::string answer(const grid::Group& alone, const std::string& folder) {
  std::vector<std::string> problems;
  std::string before = "-";
  std::string after = "-";
  std::vector<std::string> damaged;
  try {
    for (const std::filesystem::path& path : checkpoint::candidates(folder)) {
      if (path.has_extension() || is_sound(path)) continue;
      damaged.push_back(path.filename().string());
    }
    before = name_of(checkpoint::newest(alone, folder, engine::saved_parameters, problems));
    if (std::filesystem::exists(folder)) checkpoint::remove_stale(folder);
    after = name_of(checkpoint::newest(alone, folder, engine::saved_parameters, problems));
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
  return fmt::format("{}\t{}\t{}\t{}", before, after, problems.empty() ? "" : problems.front(),
                     fmt::join(damaged, ","));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    const grid::Group alone(own, "alone");
    for (std::string folder; std::getline(std::cin, folder);) {
      std::cout << answer(alone, folder) << std::endl;
    }
  }
  MPI_Finalize();
}
