#include "checkpoint/format/validate.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace kzero::checkpoint {

namespace {

constexpr Index element_bytes = sizeof(float);
constexpr Index max_steps = 1000000000;  // limit of train.steps

/// Computes the end of a run that begins at `min_begin` or later. Returns false if its numbers are
/// impossible. Counts of at least one bound the work by the number of elements, which the file's
/// size bounds.
bool find_end(const Run& run, Index min_begin, Index& end) {
  if (run.begin < min_begin || run.count < 1 || run.repeat < 1) return false;
  if (run.repeat > 1 && run.stride < run.count) return false;
  Index last = 0;
  return !__builtin_mul_overflow(run.repeat - 1, run.repeat > 1 ? run.stride : 0, &last) &&
         !__builtin_add_overflow(last, run.begin, &last) &&
         !__builtin_add_overflow(last, run.count, &end);
}

/// Returns whether ranges are ascending and disjoint within a parameter of `elements`. If so, sums
/// over them cannot overflow.
bool are_sound(const std::vector<Run>& runs, Index elements) {
  Index end = 0;
  for (const Run& run : runs) {
    if (!find_end(run, end, end) || end > elements) return false;
  }
  return true;
}

bool fits(const StoredShard& shard, const ShardFile& shard_file, const param::StateArrays& arrays) {
  const Index bytes = elements_of(shard.runs) * element_bytes;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const Index offset = shard.offsets[a];
    if (offset == no_offset && arrays[a].extent != param::Extent::all) continue;
    if (offset < 0 || bytes > shard_file.bytes || offset > shard_file.bytes - bytes) return false;
  }
  return true;
}

/// Checks that the shards hold as many elements of each parameter as it has.
void require_held(const Manifest& manifest, const std::filesystem::path& path) {
  std::vector<Index> held(manifest.parameters.size(), 0);
  for (const ShardFile& shard_file : manifest.shard_files) {
    for (const StoredShard& shard : shard_file.shards) {
      const bool can_be_counted = !__builtin_add_overflow(
          held[shard.parameter], elements_of(shard.runs), &held[shard.parameter]);
      KZERO_REQUIRE(can_be_counted, ExitCode::files, "{}: holds too many elements of {}",
                    path.string(), manifest.parameters[shard.parameter].name);
    }
  }
  for (std::size_t p = 0; p < held.size(); ++p) {
    const Parameter& parameter = manifest.parameters[p];
    KZERO_REQUIRE(held[p] == parameter.elements(), ExitCode::files,
                  "{}: holds {} elements of {}, which has {}", path.string(), held[p],
                  parameter.name, parameter.elements());
  }
}

/// Checks that the bytes of all tensors' states can be counted.
void require_countable(const Manifest& manifest, const std::filesystem::path& path) {
  Index total = 0;
  for (const Parameter& parameter : manifest.parameters) {
    Index bytes = param::bytes_per_element(manifest.state_arrays);
    bool good = true;
    for (const Index extent : parameter.shape) {
      good = good && extent > 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
    }
    good = good && !__builtin_add_overflow(total, bytes, &total);
    KZERO_REQUIRE(good, ExitCode::files, "{}: the shape of {} is impossible", path.string(),
                  parameter.name);
  }
}

/// Checks that there is a value for each row and column.
void require_reduced_state(const Manifest& m, const std::filesystem::path& path) {
  Index length = 0;
  for (const Parameter& parameter : m.parameters)
    length += param::length_of(m.reduced_arrays, parameter.shape);
  KZERO_REQUIRE(std::ssize(m.reduced_state) == length, ExitCode::files,
                "{}: holds {} values of rows and columns, its parameters have {}", path.string(),
                m.reduced_state.size(), length);
}

bool is_plain_name(const std::string& file) {
  constexpr std::size_t longest = 255;  // longest name in a folder
  return !file.empty() && file.size() <= longest && file != "." && file != ".." &&
         file.find('/') == std::string::npos;
}

/// Checks that counters of steps do not exceed the steps done.
void require_counts(const Manifest& m, const std::filesystem::path& path) {
  const bool good = m.step >= 0 && m.step <= max_steps && m.samples >= 0 && m.tokens >= 0 &&
                    m.skipped_steps >= 0 && m.skipped_steps <= m.step && m.skipped_in_row >= 0 &&
                    m.skipped_in_row <= m.skipped_steps && m.scale_good_steps >= 0 &&
                    m.scale_good_steps <= m.step - m.skipped_in_row &&
                    std::isfinite(m.loss_scale) && m.loss_scale > 0;
  KZERO_REQUIRE(good, ExitCode::files,
                "{}: its counts are impossible: {} steps, {} of them skipped, the last {} in a "
                "row, {} since the loss scale of {} changed; {} samples, {} tokens",
                path.string(), m.step, m.skipped_steps, m.skipped_in_row, m.scale_good_steps,
                m.loss_scale, m.samples, m.tokens);
  KZERO_REQUIRE(m.optimizer_start >= 0 && m.optimizer_start <= m.step - m.skipped_steps,
                ExitCode::files,
                "{}: its optimizer's state began after {} updates, of {} steps less {} skipped",
                path.string(), m.optimizer_start, m.step, m.skipped_steps);
}

/// Checks texts that messages quote.
void require_short_texts(const Manifest& m, const std::filesystem::path& path) {
  constexpr std::size_t longest = 1000;  // bytes
  const auto require = [&](const std::string& text, const char* what) {
    KZERO_REQUIRE(text.size() <= longest, ExitCode::files,
                  "{}: its {} has {} bytes, which no run writes", path.string(), what, text.size());
  };
  require(m.kzero_version, "kzero_version");
  require(m.git_hash, "git_hash");
  require(m.precision, "precision");
  require(m.optimizer, "optimizer");
  require(m.arithmetic, "arithmetic");
  for (const param::StateArray& array : m.state_arrays) require(array.name, "name of an array");
  for (const param::ReducedArray& array : m.reduced_arrays) require(array.name, "name of an array");
}

/// Checks numbers that a restart and people compare.
void require_grid(const Manifest& m, const std::filesystem::path& path) {
  constexpr Index max_ranks = 1'000'000'000, max_stages = 3;
  const auto is_count = [](Index ranks) { return ranks >= 1 && ranks <= max_ranks; };
  KZERO_REQUIRE(
      is_count(m.data_ranks) && is_count(m.tensor_ranks) && m.stage >= 0 && m.stage <= max_stages,
      ExitCode::files, "{}: its grid is impossible: {} data x {} tensor ranks, stage {}",
      path.string(), m.data_ranks, m.tensor_ranks, m.stage);
}

}  // namespace

void require_state_arrays(const param::StateArrays& arrays, const std::filesystem::path& path) {
  const auto count = static_cast<Index>(arrays.size());
  bool good = count >= 1 && count <= param::max_state_arrays;
  for (auto array = arrays.begin(); good && array != arrays.end(); ++array) {
    good = !array->name.empty() && std::find(arrays.begin(), array, *array) == array;
  }
  KZERO_REQUIRE(good, ExitCode::files,
                "{}: its list of {} state arrays is impossible: 1 to {} with different names are",
                path.string(), count, param::max_state_arrays);
}

std::string coverage_problem(const Manifest& manifest) {
  const auto held = shards_by_parameter(manifest);
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::vector<Range> ranges;
    for (const LocatedShard& part : held[p]) {
      const auto own = expand(part.shard->runs);
      ranges.insert(ranges.end(), own.begin(), own.end());
    }
    std::ranges::sort(ranges, {}, &Range::begin);
    Index end = 0;
    for (const Range& range : ranges) {
      if (range.begin != end) break;
      end += range.count;
    }
    const Parameter& parameter = manifest.parameters[p];
    if (end == parameter.elements() && elements_of(ranges) == end) continue;
    return fmt::format(
        "its ranges of {} do not cover its {} elements once (element {} is the first to be missing "
        "or doubled)",
        parameter.name, parameter.elements(), end);
  }
  return "";
}

void validate(const Manifest& manifest, const std::filesystem::path& path) {
  require_counts(manifest, path);
  require_grid(manifest, path);
  require_short_texts(manifest, path);
  require_state_arrays(manifest.state_arrays, path);
  require_countable(manifest, path);
  require_reduced_state(manifest, path);
  Index total = 0;
  for (const ShardFile& shard_file : manifest.shard_files) {
    KZERO_REQUIRE(is_plain_name(shard_file.file), ExitCode::files,
                  "{}: names \"{}\", which cannot be a file of its folder", path.string(),
                  printable_start(shard_file.file));
    KZERO_REQUIRE(shard_file.bytes >= 0 && !__builtin_add_overflow(total, shard_file.bytes, &total),
                  ExitCode::files, "{}: the size of {} is impossible, {}", path.string(),
                  shard_file.file, shard_file.bytes);
    for (const StoredShard& shard : shard_file.shards) {
      const Parameter& parameter = manifest.parameters[shard.parameter];
      KZERO_REQUIRE(are_sound(shard.runs, parameter.elements()), ExitCode::files,
                    "{}: its ranges of {} in {} overlap, or reach beyond the end of the tensor",
                    path.string(), parameter.name, shard_file.file);
      KZERO_REQUIRE(fits(shard, shard_file, manifest.state_arrays), ExitCode::files,
                    "{}: its part of {} is outside of the {} bytes of {}", path.string(),
                    parameter.name, shard_file.bytes, shard_file.file);
    }
  }
  require_held(manifest, path);
}

}  // namespace kzero::checkpoint
