#include "plan/report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/bytes.hpp"
#include "metrics/closing_report.hpp"
#include "metrics/progress.hpp"

namespace kzero::plan {

namespace {

std::string format_step(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", 1e3 * seconds) : metrics::format_seconds(seconds);
}

std::string grid_of(const Footprint& footprint) {
  return fmt::format("{} x {}", footprint.data_ranks, footprint.tensor_ranks);
}

std::string format_parameters(Index parameters) {
  return metrics::format_count(static_cast<double>(parameters));
}

/// Empty if the rank always computes.
std::string waits_line(const Waits& waits) {
  std::vector<std::string> parts;
  for (const Cause cause : all_causes)
    if (waits[cause] > 0)
      parts.push_back(fmt::format("{} {}", name_of(cause), format_step(waits[cause])));
  return parts.empty() ? "" : fmt::format("waits       {}\n", fmt::join(parts, ", "));
}

/// Empty if nothing overlaps: replays add up times in different orders, so the difference is
/// rounding.
std::string overlap_text(double seconds) {
  constexpr double shown = 5e-5;  // the least that format_step does not show as 0.0 ms
  return seconds < shown ? "" : fmt::format(", {} of them overlapped", format_step(seconds));
}

std::string estimate_lines(const Estimate& e) {
  return fmt::format(
      "step        {}, estimated: model {}{}, optimizer {}, messages {}{}{}\n{}"
      "rates       {:.4g} Tflop/s, {:.1f} GB/s of memory, {:.2f} GB/s sent, each a rank\n",
      format_step(e.seconds()), format_step(e.model),
      e.recompute > 0 ? ", recompute " + format_step(e.recompute) : "", format_step(e.optimizer),
      format_step(e.messages), e.copies > 0 ? ", copies " + format_step(e.copies) : "",
      overlap_text(e.overlapped), waits_line(e.waits), e.rates.operations / 1e12,
      e.rates.memory_bytes / 1e9, e.rates.sent_bytes / 1e9);
}

std::string speed_line(const Entry& entry) {
  if (!entry.estimate) return "";
  const auto of_rank = entry.tokens_per_second_and_rank();
  return fmt::format("speed       {} tokens/s, {} a rank\n",
                     metrics::format_count(entry.tokens_per_second()),
                     metrics::format_count(of_rank));
}

/// What may be wrong with the numbers, a line each: notes on estimates, each once, and memory.
std::string note_lines(const std::vector<Entry>& entries) {
  std::string text;
  std::set<std::string> notes;
  for (const Entry& entry : entries) {
    for (const std::string& note : entry.notes)
      if (notes.insert(note).second) text += fmt::format("note        {}\n", note);
    if (!entry.shortage.empty())
      text += fmt::format(
          "too large   {} {}\n",
          entries.size() == 1 ? "a rank" : fmt::format("of {} ranks, each", entry.ranks()),
          entry.shortage);
  }
  return text;
}

/// Empty unless a file describes the machine.
std::string attained_line(const Entry& entry) {
  if (entry.machine.empty()) return "";
  return fmt::format(
      "attained    {:.1f} Tflop/s a rank, {:.1f} without what is recomputed, at the rates of {}\n",
      entry.operations_per_second() / 1e12, entry.model_operations_per_second() / 1e12,
      entry.machine);
}

/// A long time, in days or, below two of them, in hours.
std::string format_days(double seconds) {
  constexpr double hour = 3600, day = 24 * hour;
  return seconds < 2 * day ? fmt::format("{:.1f} hours", seconds / hour)
                           : fmt::format("{:.1f} days", seconds / day);
}

std::string interruption_lines(const Entry& entry) {
  const Interruptions& found = *entry.campaign->interruptions;
  const double steps = std::max(1.0, std::floor(found.interval / entry.estimate->seconds()));
  return fmt::format(
      "failures    {:.1f} expected, one of the nodes every {}; a checkpoint of {} takes {}\n"
      "            checkpoint.every={:.0f}, {}: failures and checkpoints then take {:.1f} % of the "
      "time\n",
      entry.campaign->failures(), format_days(found.between), format_bytes(entry.checkpoint_bytes),
      format_step(found.checkpoint), steps, format_step(found.interval), 100 * found.lost);
}

/// Empty unless a number of tokens is given.
std::string campaign_lines(const Entry& entry) {
  if (!entry.campaign) return "";
  const Campaign& all = *entry.campaign;
  std::string text = fmt::format(
      "campaign    {} tokens in {:.0f} steps at {} tokens/s: {}, {} node-hours on {} {}\n",
      metrics::format_count(all.tokens), all.steps,
      metrics::format_count(entry.tokens_per_second()), format_days(all.seconds),
      metrics::format_count(all.node_hours()), all.nodes, all.nodes == 1 ? "node" : "nodes");
  if (all.joules)
    text += fmt::format("energy      {:.1f} MWh, {:.2g} J a token\n", *all.joules / 3.6e9,
                        *all.joules / all.tokens);
  return text + (all.interruptions ? interruption_lines(entry) : "");
}

std::string copies_line(const Entry& entry) {
  if (entry.tensor_ranks == 1) return "";
  return fmt::format("copies      {} parameters of the last tensor rank are another one's too\n",
                     format_parameters(entry.copied_parameters));
}

std::string adapters_line(const Entry& entry) {
  if (entry.trained_parameters == entry.parameters) return "";
  return fmt::format("adapters    {} parameters train; {} are frozen, {} of a rank's parameters\n",
                     format_parameters(entry.trained_parameters),
                     format_parameters(entry.parameters - entry.trained_parameters),
                     format_bytes(entry.frozen_bytes));
}

/// Empty unless the batch changes.
std::string phase_lines(const Entry& entry) {
  if (entry.phases.empty()) return "";
  std::string text = fmt::format("{:<12}{:>10}{:>11}{:>15}{:>9}{:>14}{:>14}\n", "phase", "steps",
                                 "sequences", "micro-batches", "rounds", "a rank", "sent a step");
  for (const PlannedPhase& phase : entry.phases) {
    text += fmt::format("from {:<7}{:>10}{:>11}{:>15}{:>9}{:>14}{:>14}\n", phase.first_step,
                        phase.steps, phase.sequences, phase.micro_batches, phase.rounds,
                        format_bytes(phase.total_bytes), format_bytes(phase.sent_bytes));
  }
  return text +
         fmt::format("tokens      {} of the run; traffic and times are those of the first phase\n",
                     metrics::format_count(entry.run_tokens));
}

/// A table has no place for the phases of each launch.
std::string phase_note(const std::vector<Entry>& entries) {
  const auto has_phases = [](const Entry& entry) { return !entry.phases.empty(); };
  if (std::ranges::none_of(entries, has_phases)) return "";
  return "note        the deck has [[train.phase]]: traffic and times are those of the first "
         "phase;\n            a plan of one launch shows every phase\n";
}

std::string format_bytes_of_file(double bytes) {
  constexpr double most = 0x1p62;  // within an Index
  return bytes < most ? format_bytes(static_cast<Index>(bytes))
                      : fmt::format("{:.3g} EiB", bytes / 0x1p60);
}

std::string full(const Entry& entry) {
  std::string text = fmt::format(
      "grid        {} data x {} tensor ranks{}\n"
      "model       {} parameters, {}, ZeRO stage {}, micro-batch {}{}\n{}{}"
      "memory of a rank       planned\n",
      entry.data_ranks, entry.tensor_ranks,
      entry.sequence_ranks > 1 ? fmt::format(", {} share each sequence", entry.sequence_ranks) : "",
      format_parameters(entry.parameters), name_of(entry.precision), entry.stage, entry.micro_batch,
      entry.recompute.mode == deck::RecomputeMode::none
          ? ""
          : fmt::format(", recompute {}{}{}", name_of(entry.recompute.mode),
                        entry.recompute.partition ? " partitioned" : "",
                        entry.recompute.offload == deck::Offload::host ? " on the host" : ""),
      adapters_line(entry), copies_line(entry));
  const auto line = [&](const std::string& name, Index bytes) {
    text += fmt::format("  {:<14}{:>14}\n", name, format_bytes(bytes));
  };
  for (const metrics::CategoryBytes& category : entry.memory) {
    if (category.planned_bytes > 0) line(category.name, category.planned_bytes);
  }
  line("sum", entry.total_bytes());
  if (entry.nccl_bytes > 0)
    text += fmt::format("  {:<14}{:>14} more, estimated\n", "NCCL", format_bytes(entry.nccl_bytes));
  text += phase_lines(entry);
  if (entry.traffic.empty()) text += "traffic     none\n";
  if (!entry.traffic.empty()) text += metrics::traffic_table(entry.traffic) + '\n';
  if (!entry.keeps_sums.empty())
    text += fmt::format("sums        of gradients are kept with zero.gradients = \"{}\"\n",
                        entry.keeps_sums);
  if (entry.teacher_bytes > 0)
    text += fmt::format(
        "teacher     distill.file takes {} bytes for each token of the data: {} for {} tokens, as "
        "the steps read\n",
        entry.teacher_bytes, format_bytes_of_file(entry.teacher_file_bytes()),
        metrics::format_count(entry.run_tokens));
  return text + (entry.estimate ? estimate_lines(*entry.estimate) : "") + speed_line(entry) +
         attained_line(entry) + campaign_lines(entry) + note_lines({entry});
}

/// Returns the bytes of the first three categories, which are the model states, and those of the
/// others.
std::pair<Index, Index> split(const Entry& entry) {
  constexpr std::size_t states = 3;
  std::pair<Index, Index> sums{0, 0};
  for (std::size_t i = 0; i < entry.memory.size(); ++i)
    (i < states ? sums.first : sums.second) += entry.memory[i].planned_bytes;
  return sums;
}

std::string shown(const Settings& settings) {
  std::string text;
  for (const auto& [key, setting] : settings) {
    text += std::visit(
        [&, &at = key](const auto& value) { return fmt::format(" {}={}", at, value); }, setting);
  }
  return text;
}

std::string step_of(const Entry& entry) {
  return entry.estimate ? format_step(entry.estimate->seconds()) : "unknown";
}

/// Tokens per second, of all ranks and of one, and the latter over that of the first entry.
std::string rate_columns(const Entry& entry, const Entry& first) {
  if (!entry.estimate || !first.estimate)
    return fmt::format("{:>10}{:>11}{:>9}", "unknown", "", "");
  const double of_rank = entry.tokens_per_second_and_rank();
  return fmt::format("{:>10}{:>11}{:>9.2f}", metrics::format_count(entry.tokens_per_second()),
                     metrics::format_count(of_rank), of_rank / first.tokens_per_second_and_rank());
}

std::string campaign_columns(const Entry& entry) {
  if (!entry.campaign) return "";
  return fmt::format("{:>13}{:>12}", format_days(entry.campaign->seconds),
                     metrics::format_count(entry.campaign->node_hours()));
}

/// Returns remarks that do not fit in the table: skipped stages, and a deck that has to change.
std::string remarks(const Fit& fit) {
  std::string text;
  for (const Refusal& refusal : fit.refusals)
    text += fmt::format("stage {} is passed over: {}\n", refusal.stage, refusal.reason);
  const auto keeps_model = [](const Answer& a) { return a.search == Search::micro_batch; };
  if (std::ranges::none_of(fit.answers, keeps_model))
    text += "the deck's own model fits in no stage at any micro-batch\n";
  return text;
}

std::vector<Entry> entries_of(const std::vector<Fit>& fits) {
  std::vector<Entry> all;
  for (const Fit& fit : fits)
    for (const Answer& answer : fit.answers) all.push_back(answer.entry);
  return all;
}

}  // namespace

std::string table(const std::vector<Entry>& entries) {
  if (entries.size() == 1) return full(entries.front());
  const auto is_planned = [](const Entry& entry) { return entry.refusal.empty(); };
  const auto first = std::ranges::find_if(entries, is_planned);
  if (first == entries.end()) return "";
  std::string text = fmt::format(
      "model       {} parameters, {}\n{:>7}{:>12}{:>7}{:>9}{:>13}{:>14}{:>14}{:>14}"
      "{:>14}{:>14}{:>10}{:>11}{:>9}{}\n",
      format_parameters(first->parameters), name_of(first->precision), "ranks", "grid", "stage",
      "threads", "micro-batch", "states", "the rest", "a rank", "sent a step", "step", "tokens/s",
      "of a rank", "scaling",
      first->campaign ? fmt::format("{:>13}{:>12}", "time", "node-hours") : "");
  for (const Entry& entry : entries) {
    if (!is_planned(entry)) {
      text += fmt::format("{:>7}  not planned: {}\n", entry.ranks(), entry.refusal);
      continue;
    }
    const auto [states, rest] = split(entry);
    text += fmt::format("{:>7}{:>12}{:>7}{:>9}{:>13}{:>14}{:>14}{:>14}{:>14}{:>14}{}{}\n",
                        entry.ranks(), grid_of(entry), entry.stage, entry.threads,
                        entry.micro_batch, format_bytes(states), format_bytes(rest),
                        format_bytes(entry.total_bytes()), format_bytes(entry.sent_bytes()),
                        step_of(entry), rate_columns(entry, *first), campaign_columns(entry));
  }
  return text + phase_note(entries) + note_lines(entries);
}

std::string table(const std::vector<Proposal>& proposals) {
  constexpr std::size_t shown_lines = 10;
  std::vector<Entry> estimated;
  std::string text = fmt::format(
      "{} of {} ways to run it, the fastest first\n{:>7}{:>12}{:>14}{:>14}{:>10}{:>11}  {}\n",
      std::min(shown_lines, proposals.size()), proposals.size(), "ranks", "grid", "a rank", "step",
      "tokens/s", "of a rank", "in the deck");
  for (std::size_t i = 0; i < std::min(shown_lines, proposals.size()); ++i) {
    const Entry& entry = proposals[i].entry;
    text += fmt::format("{:>7}{:>12}{:>14}{:>14}{:>10}{:>11} {}\n", entry.ranks(), grid_of(entry),
                        format_bytes(entry.device_bytes()), step_of(entry),
                        metrics::format_count(entry.tokens_per_second()),
                        metrics::format_count(entry.tokens_per_second_and_rank()),
                        shown(proposals[i].settings));
    estimated.push_back(entry);
  }
  return text + phase_note(estimated) + note_lines(estimated);
}

std::string table(const std::vector<Fit>& fits) {
  std::string text = fmt::format("{:>7}{:>12}{:>7}{:>13}{:>14}{:>14}  {}\n", "ranks", "grid",
                                 "stage", "parameters", "a rank", "step", "in the deck");
  for (const Fit& fit : fits) {
    for (const auto& answer : fit.answers) {
      const Entry& entry = answer.entry;
      text += fmt::format("{:>7}{:>12}{:>7}{:>13}{:>14}{:>14} ", entry.ranks(), grid_of(entry),
                          entry.stage, format_parameters(entry.parameters),
                          format_bytes(entry.total_bytes()), step_of(entry)) +
              shown(answer.settings()) + '\n';
    }
    text += remarks(fit);
  }
  const std::vector<Entry> entries = entries_of(fits);
  return text + phase_note(entries) + note_lines(entries);
}

std::string table(const std::vector<Footprint>& footprints) {
  std::string text = fmt::format(
      "model states alone, 2 + 2 + 12 bytes a parameter; GB = 1e9 bytes\n"
      "{:>7}{:>12}{:>7}{:>13}{:>14}{:>14}{:>14}{:>14}\n",
      "ranks", "grid", "stage", "model (1e9)", "parameters", "gradients", "optimizer", "a rank");
  const auto gigabytes = [](Index bytes) {
    return fmt::format("{:.3f} GB", static_cast<double>(bytes) / 1e9);
  };
  for (const Footprint& footprint : footprints) {
    text += fmt::format("{:>7}{:>12}{:>7}{:>13.3f}", footprint.ranks(), grid_of(footprint),
                        footprint.stage, static_cast<double>(footprint.parameters) / 1e9);
    for (const metrics::CategoryBytes& state : footprint.memory)
      text += fmt::format("{:>14}", gigabytes(state.planned_bytes));
    text += fmt::format("{:>14}\n", gigabytes(footprint.total_bytes()));
  }
  return text;
}

}  // namespace kzero::plan
