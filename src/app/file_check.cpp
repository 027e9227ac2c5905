#include "app/file_check.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "app/node_problems.hpp"
#include "app/teacher_check.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/types.hpp"
#include "checkpoint/folder/retention.hpp"
#include "convert/adapter.hpp"
#include "convert/model_classes.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weights.hpp"
#include "grid/agreement.hpp"
#include "infer/token_bytes.hpp"
#include "metrics/line_file.hpp"
#include "model/definition.hpp"
#include "optim/optimizer.hpp"
#include "run/algorithms.hpp"
#include "run/trace_file.hpp"
#include "runtime/host_name.hpp"

namespace kzero::app {

namespace {

namespace fs = std::filesystem;

// Whether the program will be able to write is tried by writing. Permissions, quotas, read-only and
// full disks all fail in the same way. Nothing is left behind.

/// Returns the path itself if something with its name exists, even a dangling link.
fs::path nearest_existing(const fs::path& path) {
  fs::path found = path;
  std::error_code ignored;
  while (!fs::exists(fs::symlink_status(found, ignored))) {
    if (!found.has_parent_path() || found == found.parent_path()) return ".";
    found = found.parent_path();
  }
  return found;
}

/// Returns 0, or the errno of the call that failed. All nodes may share the folder, so the name is
/// unique to this process. A file that somebody else put there is not written.
int try_to_write(const fs::path& folder) {
  const fs::path probe = folder / fmt::format(".kzero_probe_{}_{}_{:08x}", runtime::host_name(),
                                              ::getpid(), std::random_device()());
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  const std::array<char, 4096> block{};  // a single byte may fit where no block does
  const ssize_t written = ::write(descriptor, block.data(), block.size());
  int problem = written == static_cast<ssize_t>(block.size()) ? 0 : (written < 0 ? errno : ENOSPC);
  if (::close(descriptor) != 0 && problem == 0) problem = errno;  // where NFS reports quotas
  if (::unlink(probe.c_str()) != 0 && problem == 0) problem = errno;
  return problem;
}

/// Returns the file that opening a name would create: the target of the last in a chain of dangling
/// links.
fs::path end_of_links(fs::path file) {
  constexpr int max_links = 40;  // the kernel's limit
  std::error_code problem;
  for (int i = 0; i < max_links && fs::is_symlink(fs::symlink_status(file, problem)); ++i)
    file = file.parent_path() / fs::read_symlink(file, problem);
  return file;
}

void require(int problem, const std::string& key, const fs::path& path, const fs::path& tried) {
  KZERO_REQUIRE(problem == 0, ExitCode::files,
                "{}: {} cannot be written ({}{}); name a place that this job may write to", key,
                path.string(), std::strerror(problem),
                tried == path ? "" : fmt::format(", tried in {}", tried.string()));
}

/// Throws Error(files) unless a file can be written in the folder. A missing folder is not created;
/// its nearest existing parent is tried instead. Messages begin with `key`.
void require_writable_folder(const std::string& key, const fs::path& folder) {
  const fs::path tried = nearest_existing(folder);
  std::error_code ignored;
  require(fs::is_directory(tried, ignored) ? try_to_write(tried) : ENOTDIR, key, folder, tried);
}

/// Checks a file that will be appended to. If it does not exist yet, tries its folder.
void require_writable_file(const std::string& key, const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    const fs::path target = end_of_links(file);
    const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
    const bool is_made = target == file;  // with its folder; a link's target needs one
    const fs::path tried = is_made ? nearest_existing(folder) : folder;
    const int otherwise = fs::exists(tried, ignored) ? ENOTDIR : ENOENT;
    require(fs::is_directory(tried, ignored) ? try_to_write(tried) : otherwise, key, file, tried);
    return;
  }
  // Opened with O_NONBLOCK, since a FIFO would block.
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  require(descriptor < 0 ? errno : 0, key, file, file);
  ::close(descriptor);
}

/// Returns the bytes that this user may still write at the path, or where it would be created;
/// empty if the file system does not report them.
std::optional<Index> free_bytes(const fs::path& path) {
  struct statvfs status {};
  if (::statvfs(nearest_existing(path).c_str(), &status) != 0 || status.f_blocks == 0)
    return std::nullopt;
  return static_cast<Index>(status.f_bavail) * static_cast<Index>(status.f_frsize);
}

/// Bytes of a checkpoint: the optimizer's state in fp32, and the overhead of HDF5 and the manifest
/// for each stored range. The overhead was measured: 1.6 KiB per parameter and 8 KiB per
/// rank.
Index checkpoint_bytes(const deck::Config& config) {
  constexpr Index bytes_of_range = 2048, ranges_of_rank = 4;
  const param::Table table = param::trained_of(model::define(config)->table({}));
  const Index tensor = config.grid.tensor, ranks = std::max<Index>(1, config.grid.data) * tensor;
  Index parameters = 0;
  for (const param::UnitSpec& unit : table) parameters += static_cast<Index>(unit.params.size());
  const auto optimizer = optim::make_optimizer(config);
  return param::bytes_per_element(optimizer->state()) * param::elements_of(table) +
         bytes_of_range * (parameters * tensor + ranges_of_rank * ranks);
}

/// A checkpoint is complete before the previous one is removed, so two need space; an existing one
/// is one of the two.
void require_room(const deck::Config& config) {
  const auto there = static_cast<Index>(checkpoint::candidates(config.checkpoint.folder).size());
  const Index bytes = checkpoint_bytes(config), count = there > 0 ? 1 : 2;
  const auto left = free_bytes(config.checkpoint.folder);
  KZERO_REQUIRE(!left || *left >= count * bytes, ExitCode::files,
                "checkpoint.folder: {} has room for {}, but {} of {} {} to fit; make room or name "
                "another file system",
                config.checkpoint.folder, format_bytes(*left),
                count == 1 ? "one more checkpoint" : "two checkpoints", format_bytes(bytes),
                count == 1 ? "has" : "have");
}

void load_algorithms(const deck::Config& config, run::RunInputs& inputs, ProblemList& problems) {
  problems.collect("run.algorithms",
                   [&] { inputs.algorithms = run::load_algorithms(config.run.algorithms); });
}

}  // namespace

run::RunInputs check_files(const deck::Config& config, const Inspection& inspection,
                           ProblemList& problems) {
  run::RunInputs inputs;
  inputs.dataset = data::open_dataset(config, problems);
  inputs.dataset.check_tokens(inspection.part, inspection.parts, problems);
  if (problems.empty() && deck::distills(config.distill)) {
    problems.collect("distill.file", [&] {
      require_tokenizers(config, inputs.dataset);
      if (inspection.parts == 1) require_contents(inputs.dataset, contents(inputs.dataset, 0, 1));
    });
  }
  inputs.export_note = convert::export_note(config.model);
  if (!config.model.initial.empty()) {
    problems.collect("model.initial", [&] {
      const auto weights = std::make_shared<const convert::Weights>(
          config.model.initial, config.model, param::base_of(model::define(config)->table({})));
      KZERO_REQUIRE(
          weights->new_rows() == 0 || !deck::trains_adapters(config.lora), ExitCode::usage,
          "model.vocab = {}, but {} has {} tokens, and adapters (lora.rank) train no rows "
          "for new ones; train all parameters, or use the tokens that there are",
          config.model.vocab, printable(config.model.initial),
          config.model.vocab - weights->new_rows());
      inputs.initial_note = weights->note();
      inputs.initial = [weights](const param::ParamSpec& p, const checkpoint::Range& range,
                                 std::span<float> values) {
        weights->load_range(p.name, range, values);
      };
    });
  }
  if (!config.lora.initial.empty()) {
    problems.collect("lora.initial", [&] {
      const auto weights = std::make_shared<const convert::AdapterWeights>(
          config.lora.initial, config.lora, config.model.family, model::define(config)->table({}));
      inputs.adapters_base = weights->base_hash();
      inputs.adapters = [weights](const param::ParamSpec& p, const checkpoint::Range& range,
                                  std::span<float> values) {
        weights->load_range(p.name, range, values);
      };
    });
  }
  const std::string& folder = config.checkpoint.folder;
  if (!folder.empty() && inspection.tries_checkpoints) {
    problems.collect("checkpoint.folder", [&] {
      require_writable_folder("checkpoint.folder", folder);
      if (inspection.is_first) require_room(config);
    });
  }
  const auto try_file = [&](const std::string& key, const std::string& file, auto require_kind) {
    if (file.empty() || !inspection.is_first) return;
    problems.collect(key, [&] {
      require_kind(file);
      require_writable_file(key, file);
    });
  };
  if (inspection.is_first) load_algorithms(config, inputs, problems);
  try_file("run.metrics", config.run.metrics, metrics::require_metrics_file);
  try_file("run.profile", config.run.profile, run::require_trace_file);
  try_file("run.end_file", config.run.end_file, [](const std::string&) {});
  return inputs;
}

void check_tokenizer(const deck::Config& config, ProblemList& problems) {
  const std::string file = convert::find_tokenizer("", "", config.data).string();
  if (file.empty()) return;
  problems.collect(file, [&] {
    try {
      infer::token_bytes(file, config.model.vocab);
    } catch (const Error& error) {
      fail(ExitCode::files,
           "{}; kzero generate would refuse it (training does not read it; to continue, "
           "move it out of the data's folder)",
           error.what());
    }
  });
}

run::RunInputs check_files(const deck::Config& config, const runtime::Session& session,
                           const grid::Group& world) {
  run::RunInputs inputs;
  ProblemList mine;
  grid::collectively(world, [&] {
    inputs = check_files(config,
                         {.part = session.rank(),
                          .parts = session.size(),
                          .tries_checkpoints = session.node_rank() == 0,
                          .is_first = session.rank() == 0},
                         mine);
  });
  const auto of_ranks = world.gather(pack(runtime::host_name(), mine));
  const std::string text = world.broadcast(merged(of_ranks).text());
  if (!text.empty()) throw grid::AgreedError(ExitCode::files, text);
  if (deck::distills(config.distill)) {
    std::vector<std::uint64_t> sums;
    grid::collectively(world,
                       [&] { sums = contents(inputs.dataset, session.rank(), session.size()); });
    world.sum(sums);
    grid::collectively(world, [&] { require_contents(inputs.dataset, sums); });
  }
  return inputs;
}

}  // namespace kzero::app
