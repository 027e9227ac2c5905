#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "kernels/attention/backends.hpp"

namespace kzero::kernels {

namespace {

[[noreturn]] void refuse(const AttentionProblem& problem, AttentionKind kind,
                         const std::string& reason) {
  if (!problem.fixed_order)
    fail(ExitCode::usage, "run.deterministic = false needs cuDNN's attention: {}", reason);
  fail(ExitCode::usage, "run.attention = \"{}\": {}; \"auto\" takes kzero's kernels then",
       name_of(kind), reason);
}

/// Returns the back ends of this build from `kind` on, in the order in which they are tried.
template <class T>
std::span<const AttentionEntry<T>> candidates(const AttentionProblem& problem, AttentionKind kind) {
  const auto table = attention_backends<T>();
  if (kind == AttentionKind::automatic) return table;
  const auto found = std::ranges::find(table, kind, &AttentionEntry<T>::name);
  if (found == table.end()) {
    const auto title = kind == AttentionKind::cudnn ? "cuDNN" : name_of(kind);
    refuse(problem, kind, fmt::format("this build has no {}", title));
  }
  return {found, table.end()};
}

}  // namespace

template <class T>
ChosenAttention<T> choose_attention(memory::Arenas& arenas, const AttentionProblem& problem,
                                    AttentionKind kind, Index threads) {
  if (!problem.fixed_order) kind = AttentionKind::cudnn;  // the others have one order
  ChosenAttention<T> chosen;
  std::vector<std::unique_ptr<AttentionBackend<T>>> able;
  Index bytes = 0;
  for (const AttentionEntry<T>& entry : candidates<T>(problem, kind)) {
    auto backend = entry.make(problem);
    std::string reason = backend->refusal();
    if (reason.empty()) {
      bytes = std::max(bytes, backend->scratch_bytes(threads));
      able.push_back(std::move(backend));
    } else if (able.empty()) {
      chosen.refusal = std::move(reason);
    }
  }
  const Vector<float> scratch(arenas.take<float>(memory::Category::workspace, bytes / 4),
                              static_cast<std::size_t>(bytes / 4));
  for (auto& next : able) {
    if (chosen.backend || arenas.measuring()) break;
    try {
      next->start(scratch);
      chosen.backend = std::move(next);
    } catch (const Error& error) {
      chosen.refusal = error.what();
    }
  }
  if (kind != AttentionKind::automatic && !chosen.refusal.empty())
    refuse(problem, kind, chosen.refusal);
  if (chosen.backend && attention_backends<T>().size() > 1)
    chosen.arithmetic = "attention by " + chosen.backend->name();
  return chosen;
}

#define KZERO_INSTANTIATE(T)                                                                \
  template ChosenAttention<T> choose_attention<T>(memory::Arenas&, const AttentionProblem&, \
                                                  AttentionKind, Index);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
