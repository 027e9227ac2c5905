#include "run/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/version.hpp"
#include "storage/files.hpp"

namespace kzero::run {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view opening = "{\"otherData\":{\"program\":\"kzero";
constexpr std::size_t flush_bytes = std::size_t{1} << 20;

std::string as_json(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// Creates the file's folder.
const fs::path& with_folder(const fs::path& path) {
  if (path.has_parent_path()) storage::create_folders_durably(path.parent_path());
  return path;
}

std::string arguments_of(const SpanWork& work, double seconds) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& value) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  };
  if (work.rank >= 0) add("to_rank", work.rank);
  if (work.elements > 0) add("elements", work.elements);
  if (work.bytes > 0) add("bytes", work.bytes);
  if (work.operations > 0) {
    const double gflop = static_cast<double>(work.operations) / 1e9;
    add("gflop", fmt::format("{:.6g}", gflop));
    if (seconds > 0) add("gflop_per_second", fmt::format("{:.4g}", gflop / seconds));
  }
  return text;
}

}  // namespace

void require_trace_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return;
  const auto start = first_bytes(path, opening.size());
  KZERO_REQUIRE(start && (start->empty() || *start == opening), ExitCode::files,
                "run.profile: {} exists and is not a time line; name another file, or move it away",
                path.string());
}

TraceFile::TraceFile(fs::path path, std::string steps, std::vector<TracedRank> ranks)
    : path_(std::move(path)),
      steps_(std::move(steps)),
      ranks_(std::move(ranks)),
      file_(with_folder(path_)) {
  zero_ = ranks_.front().begin - ranks_.front().ahead;
  for (const TracedRank& rank : ranks_) zero_ = std::min(zero_, rank.begin - rank.ahead);
  text_ =
      fmt::format("{} {}\",\"steps\":{},\"ranks\":{},\"clock_accuracy_us\":{:.3f},\"lost_spans\":[",
                  opening, version(), as_json(steps_), ranks_.size(), accuracy());
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    text_ += fmt::format("{}{}", r == 0 ? "" : ",", ranks_[r].lost);
  text_ += "]},\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  write_names();
}

void TraceFile::write_names() {
  const char* separator = "\n";
  const auto add = [&](const std::string& event) {
    put(separator + event);
    separator = ",\n";
  };
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const TracedRank& rank = ranks_[r];
    add(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})", r,
                    as_json(fmt::format("rank {} ({})", r, rank.host))));
    add(fmt::format(
        R"({{"name":"process_sort_index","ph":"M","pid":{0},"args":{{"sort_index":{0}}}}})", r));
    for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
      add(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      r, lane, as_json(rank.lanes[lane])));
      const std::size_t place = rank.lanes[lane] == "compute" ? 0 : lane + 1;
      add(fmt::format(
          R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
          r, lane, place));
    }
  }
}

void TraceFile::append(int rank, std::span<const std::byte> records) {
  KZERO_EXPECT(records.size() % sizeof(SpanRecord) == 0);
  for (; !records.empty(); records = records.subspan(sizeof(SpanRecord))) {
    SpanRecord span;
    std::memcpy(&span, records.data(), sizeof span);
    write_span(rank, span);
  }
}

void TraceFile::write_span(int rank, const SpanRecord& span) {
  const TracedRank& r = ranks_[rank];
  const std::int64_t end = span.end == 0 ? r.end : span.end;
  const std::string work = arguments_of(span.work, static_cast<double>(end - span.begin) * 1e-9);
  put(fmt::format(
      R"({}{{"name":{},"cat":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{{}}}}})",
      ",\n", as_json(span.name), name_of(span.kind), microseconds(r, span.begin),
      static_cast<double>(end - span.begin) / 1000, rank, span.lane, work));
  ++spans_;
}

void TraceFile::put(const std::string& event) {
  text_ += event;
  if (text_.size() >= flush_bytes) flush();
}

void TraceFile::flush() {
  file_.append(std::as_bytes(std::span(text_)));
  text_.clear();
}

void TraceFile::finish() {
  text_ += "\n]}\n";
  flush();
  file_.finish();
}

double TraceFile::microseconds(const TracedRank& rank, std::int64_t time) const {
  return static_cast<double>(time - rank.ahead - zero_) / 1000;
}

double TraceFile::accuracy() const {
  std::int64_t worst = 0;
  for (const TracedRank& rank : ranks_) worst = std::max(worst, rank.clock_accuracy);
  return static_cast<double>(worst) / 1000;
}

std::string TraceFile::summary() const {
  std::string text = fmt::format("time line of {} in {}: {} spans of {} {}", steps_, path_.string(),
                                 spans_, ranks_.size(), ranks_.size() == 1 ? "rank" : "ranks");
  if (accuracy() > 0) text += fmt::format(", clocks agree to {:.1f} us", accuracy());
  Index lost = 0, max_lost = 0;
  for (const TracedRank& rank : ranks_) {
    lost += rank.lost;
    max_lost = std::max(max_lost, rank.lost);
  }
  if (lost == 0) return text;
  return text + fmt::format(
                    "\nwarning     the time line lacks {} spans that did not fit; record fewer "
                    "steps, or raise run.profile_buffer by {}",
                    lost, format_bytes(max_lost * static_cast<Index>(sizeof(SpanRecord))));
}

}  // namespace kzero::run
