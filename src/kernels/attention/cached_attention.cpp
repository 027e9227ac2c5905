#include "kernels/attention/cached_attention.hpp"

#include "kernels/exponential.hpp"

namespace kzero::kernels {

namespace {

using CacheScratch = Kokkos::View<float*, Execution::scratch_memory_space, Kokkos::MemoryUnmanaged>;

/// Where the keys and values of a sequence's heads begin.
template <class T>
struct CachedHeads {
  T *keys, *values;
  Index kv_heads, places, head_elements, width;

  CachedHeads(const CacheShape& shape, const KeyValueCache<T>& cache)
      : keys(cache.keys),
        values(cache.values),
        kv_heads(shape.kv_heads),
        places(shape.blocks() * cache_block),
        head_elements(places * shape.head_width),
        width(shape.head_width) {}

  KOKKOS_INLINE_FUNCTION Index begin(Index sequence, Index head) const {
    return (sequence * kv_heads + head) * head_elements;
  }
};

/// One head of one row, and its team's scratch: a block's scores, and the output's sums.
template <class T>
struct Query {
  const T *q, *keys, *values;
  T* out;
  Index first, seen, places, width;  // keys [first, seen)
  float scale;
  float *scores, *sums;
};

/// scores[j] = scale * q . key j of a block.
template <class T>
KOKKOS_INLINE_FUNCTION void score_block(const Team& team, const Query<T>& a, const T* keys) {
  float* scores = a.scores;
  if constexpr (tensor::on_host) {
    for_each(team, cache_block, [=](Index j) { scores[j] = 0; });
    for (Index c = 0; c < a.width; ++c) {
      const float q = a.scale * static_cast<float>(a.q[c]);
      const T* column = keys + c * cache_block;
      for_each(team, cache_block, [=](Index j) { scores[j] += q * static_cast<float>(column[j]); });
    }
  } else {
    for_each(team, cache_block, [=](Index j) {
      float score = 0;
      for (Index c = 0; c < a.width; ++c)
        score +=
            a.scale * static_cast<float>(a.q[c]) * static_cast<float>(keys[c * cache_block + j]);
      scores[j] = score;
    });
  }
}

/// sums = factor * sums + the values of `count` keys, weighted by their probabilities.
template <class T>
KOKKOS_INLINE_FUNCTION void add_values(const Team& team, const Query<T>& a, const T* values,
                                       Index count, float factor) {
  float* sums = a.sums;
  const float* p = a.scores;
  const Index width = a.width;
  if constexpr (tensor::on_host) {
    for_each(team, width, [=](Index c) { sums[c] *= factor; });
    for (Index j = 0; j < count; ++j) {
      const float pj = p[j];
      const T* row = values + j * width;
      for_each(team, width, [=](Index c) { sums[c] += pj * static_cast<float>(row[c]); });
    }
  } else {
    for_each(team, width, [=](Index c) {
      float total = factor * sums[c];
      for (Index j = 0; j < count; ++j) total += p[j] * static_cast<float>(values[j * width + c]);
      sums[c] = total;
    });
  }
}

template <class T>
KOKKOS_INLINE_FUNCTION void attend(const Team& team, const Query<T>& a) {
  float *scores = a.scores, *sums = a.sums;
  for_each(team, a.width, [=](Index c) { sums[c] = 0; });
  float largest = -Kokkos::Experimental::infinity_v<float>, total = 0;
  for (Index first = a.first / cache_block * cache_block; first < a.seen; first += cache_block) {
    const Index count = Kokkos::min(Index{cache_block}, a.seen - first), place = first % a.places;
    team.team_barrier();  // the previous block has been read
    score_block(team, a, a.keys + place * a.width);
    team.team_barrier();
    if (first < a.first) {  // the keys before the window weigh nothing
      for_each(team, a.first - first,
               [=](Index j) { scores[j] = -Kokkos::Experimental::infinity_v<float>; });
      team.team_barrier();
    }
    const float new_largest =
        Kokkos::fmax(largest, max(team, count, [=](Index j) { return scores[j]; }));
    const float factor = exponential(largest - new_largest);  // 0 before the first block
    // No barrier is needed: a thread that has the maximum knows that all have read the scores.
    for_each(team, count, [=](Index j) { scores[j] = exponential(scores[j] - new_largest); });
    team.team_barrier();
    total = total * factor + sum(team, count, [=](Index j) { return scores[j]; });
    add_values(team, a, a.values + place * a.width, count, factor);
    largest = new_largest;
  }
  team.team_barrier();
  T* out = a.out;
  const float inverse = 1.0F / total;
  for_each(team, a.width, [=](Index c) { out[c] = static_cast<T>(sums[c] * inverse); });
}

}  // namespace

template <class T>
void store_keys_values(const Execution& exec, const CacheShape& shape, const RowPlaces& rows,
                       const HeadColumns<const T>& k, const HeadColumns<const T>& v,
                       const KeyValueCache<T>& cache) {
  const CachedHeads<T> heads(shape, cache);
  const RowPlaces at = rows;
  const HeadColumns<const T> keys = k, values = v;
  const Index width = shape.head_width, kv_heads = shape.kv_heads;
  Kokkos::parallel_for(
      "kzero::kernels::store_keys_values",
      Policy(exec, static_cast<int>(rows.position.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), place = at.position(i) % heads.places;
        const Index block = place / cache_block * cache_block, inside = place % cache_block;
        for_each(team, kv_heads * width, [=](Index element) {
          const Index head = element / width, c = element % width;
          const Index begin = heads.begin(at.sequence(i), head);
          heads.keys[begin + block * width + c * cache_block + inside] =
              keys.data[i * keys.stride + element];
          heads.values[begin + place * width + c] = values.data[i * values.stride + element];
        });
      });
}

template <class T>
void cached_attention(const Execution& exec, const CacheShape& shape, const RowPlaces& rows,
                      const HeadColumns<const T>& q, const KeyValueCache<T>& cache, Matrix<T> out,
                      Index window, float scale) {
  const CachedHeads<T> cached(shape, cache);
  const RowPlaces at = rows;
  const HeadColumns<const T> queries = q;
  const Index width = shape.head_width, heads = shape.heads, group = heads / shape.kv_heads;
  const float factor = score_factor(scale, width);
  Policy policy(exec, static_cast<int>(out.extent(0) * heads), team_size(4), vector_length(32));
  policy.set_scratch_size(
      0, Kokkos::PerTeam(static_cast<int>(CacheScratch::shmem_size(cache_block + width))));
  Kokkos::parallel_for(
      "kzero::kernels::cached_attention", policy, KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank() / heads, head = team.league_rank() % heads;
        const Index begin = cached.begin(at.sequence(i), head / group);
        const Index seen = at.position(i) + 1;
        const Index first = window > 0 ? Kokkos::max(Index{0}, seen - window) : Index{0};
        float* scratch = CacheScratch(team.team_scratch(0), cache_block + width).data();
        attend<T>(team, {queries.data + i * queries.stride + head * width, cached.keys + begin,
                         cached.values + begin, &out(i, head * width), first, seen, cached.places,
                         width, factor, scratch, scratch + cache_block});
      });
}

#define KZERO_INSTANTIATE(T)                                                                   \
  template void store_keys_values<T>(const Execution&, const CacheShape&, const RowPlaces&,    \
                                     const HeadColumns<const T>&, const HeadColumns<const T>&, \
                                     const KeyValueCache<T>&);                                 \
  template void cached_attention<T>(const Execution&, const CacheShape&, const RowPlaces&,     \
                                    const HeadColumns<const T>&, const KeyValueCache<T>&,      \
                                    Matrix<T>, Index, float);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
