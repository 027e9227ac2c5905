#include "app/teacher_check.hpp"

#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/tokenizer_files.hpp"
#include "infer/token_bytes.hpp"

namespace kzero::app {

void require_tokenizers(const deck::Config& config, const data::Dataset& dataset) {
  std::error_code ignored;
  const std::filesystem::path initial = config.model.initial;
  const bool is_folder = std::filesystem::is_directory(initial, ignored);
  const auto file = convert::find_tokenizer("", is_folder ? initial : "", config.data);
  if (file.empty()) return;
  const std::uint64_t hash = infer::tokenizer_hash(file.string());
  for (const data::TrainingSource& source : dataset.sources) {
    const std::uint64_t found = source.teacher->facts().tokenizer;
    KZERO_REQUIRE(
        found == 0 || found == hash, ExitCode::files,
        "{}: is of a teacher whose tokenizer has hash {}, but the student's, {}, has hash "
        "{}; a teacher needs the student's tokenizer",
        printable(source.teacher->path()), format_checksum(found), printable(file.string()),
        format_checksum(hash));
  }
}

std::vector<std::uint64_t> contents(const data::Dataset& dataset, Index part, Index parts) {
  std::vector<std::uint64_t> sums;
  for (const data::TrainingSource& source : dataset.sources)
    sums.push_back(source.files->content_sum(part, parts));
  return sums;
}

void require_contents(const data::Dataset& dataset, std::span<const std::uint64_t> hashes) {
  for (std::size_t i = 0; i < dataset.sources.size(); ++i) {
    const data::TeacherFile& teacher = *dataset.sources[i].teacher;
    const std::uint64_t found = teacher.facts().content;
    KZERO_REQUIRE(found == hashes[i], ExitCode::files,
                  "{}: its teacher read tokens with hash {}, but those of the data have hash {}; "
                  "write it again with `kzero evaluate --top`",
                  printable(teacher.path()), format_checksum(found), format_checksum(hashes[i]));
  }
}

}  // namespace kzero::app
