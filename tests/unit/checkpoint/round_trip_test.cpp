// Loaded state equals saved state bit for bit, on the same grid and on any other.
#include <mpi.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/input_file.hpp"
#include "checkpoint/inspect.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using RoundTrip = CheckpointTest;

/// The ranks below `size` as their own group. The other ranks get a group that must not be used.
grid::Group first_ranks(const grid::Group& world, int size) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world.handle(), world.rank() < size ? 0 : 1, world.rank(), &part);
  return {part, "part"};
}

void expect_loads_everywhere(const Found& found, Index step) {
  const auto model = small_model();
  for (const Index ranks : {1, 2, 3, 4, 5, 7, 16}) {
    for (Index rank = 0; rank < ranks; ++rank) {
      Share flat = flat_share(model, rank, ranks);
      read(found, flat.shards);
      EXPECT_EQ(wrong_values(flat, model, step), 0) << rank << " of " << ranks;
      Share columns = column_share(model, rank, ranks);
      read(found, columns.shards);
      EXPECT_EQ(wrong_values(columns, model, step), 0) << "columns, " << rank << " of " << ranks;
    }
  }
}

TEST_F(RoundTrip, EveryGridLoadsWhatAnyGridSaved) {
  for (int ranks = 1; ranks <= world.size(); ++ranks) {
    const grid::Group part = first_ranks(world, ranks);
    if (world.rank() < ranks) save(part, folder, ranks, 0);
    world.barrier();
    const auto found = search();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->manifest.step, ranks);
    EXPECT_EQ(found->manifest.shard_files.size(), static_cast<std::size_t>(ranks));
    expect_loads_everywhere(*found, ranks);
  }
  EXPECT_TRUE(problems.empty()) << all_of(problems);
}

TEST_F(RoundTrip, ColumnSlicesLoadOnEveryGrid) {
  const auto model = small_model();
  for (Index ranks_per_file = 1; ranks_per_file <= world.size() + 1; ++ranks_per_file) {
    const Share share =
        filled(column_share(model, world.rank(), world.size()), model, ranks_per_file);
    write(world, folder, manifest_at(ranks_per_file, model), share.shards, 0, ranks_per_file);
    const auto found = search();
    ASSERT_TRUE(found) << all_of(problems);
    EXPECT_EQ(std::ssize(found->manifest.shard_files), ceil_div(world.size(), ranks_per_file));
    expect_loads_everywhere(*found, ranks_per_file);
    require_saved_values(world, *found, share.shards);
  }
}

TEST_F(RoundTrip, TheParametersHashIsTheSameForEveryPartitioning) {
  const auto model = small_model();
  Share share = filled(column_share(model, world.rank(), world.size()), model, 1);
  write(world, folder, manifest_at(1, model), share.shards, 0);
  const auto by_columns = search()->manifest.parameter_hash;
  save(world, folder, 1, 0, 2);
  const auto found = search();
  EXPECT_EQ(found->manifest.parameter_hash, by_columns);
  EXPECT_NO_THROW(require_saved_values(world, *found, share.shards));
  // A sign, two swapped elements, and two swapped moments.
  const std::vector<std::function<void(const StateShard&)>> changes{
      [](const StateShard& shard) {
        float& value = shard.arrays[1].values[0];
        value = -value;
      },
      [](const StateShard& shard) {
        std::swap(shard.arrays[0].values[0], shard.arrays[0].values[1]);
      },
      [](const StateShard& shard) {
        std::swap(shard.arrays[1].values[2], shard.arrays[2].values[2]);
      }};
  for (const auto& change : changes) {
    if (world.is_root()) change(share.shards.front());
    const std::string text =
        error_of(ExitCode::files, [&] { require_saved_values(world, *found, share.shards); });
    EXPECT_TRUE(contains(text, "step_00000001: what was loaded has the hash")) << text;
    if (world.is_root()) change(share.shards.front());
  }
  save(world, folder, 2, 0);
  EXPECT_NE(search()->manifest.parameter_hash, by_columns);
}

TEST_F(RoundTrip, TheSameStateGivesTheSameFiles) {
  for (const Index ranks_per_file : {1, 2}) {
    std::vector<std::string> files;
    for (const char* name : {"a", "b"}) {
      save(world, folder / name, 1, 0, ranks_per_file);
      files.push_back(load_file(folder / name / "step_00000001" / shard_file_name(0)));
    }
    EXPECT_EQ(files[0], files[1]);
  }
}

TEST_F(RoundTrip, ManifestComesBackAsGiven) {
  const Written written = save(world, folder, 1234, 3, 1, 5);
  EXPECT_EQ(written.path, folder / "step_00001234");
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->path, written.path);
  const Manifest& m = found->manifest;
  EXPECT_EQ(written.parameter_hash, m.parameter_hash);  // on every rank
  const Manifest wanted = manifest_at(1234, small_model());
  EXPECT_EQ(m.deck, wanted.deck);
  EXPECT_EQ(m.model, wanted.model);
  EXPECT_EQ(m.precision, wanted.precision);
  EXPECT_EQ(m.step, 1234);
  EXPECT_EQ(m.tokens, wanted.tokens);
  EXPECT_EQ(m.samples, wanted.samples);
  EXPECT_EQ(m.loss_scale, wanted.loss_scale);
  EXPECT_EQ(m.scale_good_steps, 17);
  EXPECT_EQ(m.skipped_steps, 7);
  EXPECT_EQ(m.skipped_in_row, 5);
  EXPECT_EQ(m.data_ranks, world.size());
  EXPECT_EQ(m.state_arrays, three_arrays());
  EXPECT_EQ(m.parameters, wanted.parameters);
  EXPECT_FALSE(m.kzero_version.empty());
  Index bytes = 0;
  for (const ShardFile& shard_file : m.shard_files) {
    EXPECT_EQ(fs::file_size(written.path / shard_file.file),
              static_cast<std::uintmax_t>(shard_file.bytes));
    bytes += shard_file.bytes;
  }
  EXPECT_EQ(written.bytes, bytes);
}

// An array that some parameters lack is restored on any number of ranks and hashed. It has no
// datasets for those parameters, whether a file has one writer or more.
TEST_F(RoundTrip, ArraysThatLeaveOutHiddenMatricesComeBack) {
  const param::StateArrays arrays{
      {"master"}, {"momentum"}, {"second_moment", param::Extent::all_but_matrices}};
  const auto model = small_model();
  for (const int ranks_per_file : {1, 2}) {
    const Index step = ranks_per_file;
    Manifest manifest = manifest_at(step, model);
    manifest.state_arrays = arrays;
    const Share saved = filled(flat_share(model, world.rank(), world.size(), arrays), model, step);
    const auto written = write(world, folder, manifest, saved.shards, 0, ranks_per_file);
    for (const Index ranks : {1, world.size(), 3}) {
      Share back = flat_share(model, world.rank() % ranks, ranks, arrays);
      const auto found = search(back.shards);
      ASSERT_TRUE(found) << all_of(problems);
      EXPECT_EQ(found->manifest.state_arrays, arrays);
      read(*found, back.shards);
      EXPECT_EQ(wrong_values(back, model, step), 0) << ranks << " ranks";
    }
    const auto found = search();
    require_saved_values(world, *found, saved.shards);
    for (const ShardFile& shard_file : found->manifest.shard_files) {
      for (const StoredShard& shard : shard_file.shards) {
        const bool is_matrix = model[shard.parameter].shape.size() == 2;
        EXPECT_EQ(shard.offsets[2] == no_offset, is_matrix);
        EXPECT_NE(shard.offsets[1], no_offset);
      }
    }
    Share more = flat_share(model, world.rank(), world.size(), three_arrays());
    for (StateShard& shard : more.shards) shard.arrays[1].name = "momentum";
    EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { read(*found, more.shards); }),
                         "holds no values of second_moment, wanted of "));
  }
}

// An optimizer may keep any number of arrays, from one to the maximum.
TEST_F(RoundTrip, AnyNumberOfStateArraysComesBack) {
  const param::StateArrays all{{"master"}, {"momentum"}, {"slow"}, {"fourth one"}};
  const auto model = small_model();
  for (std::size_t count = 1; count <= all.size(); ++count) {
    const param::StateArrays arrays(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    const auto step = static_cast<Index>(count);
    Manifest manifest = manifest_at(step, model);
    manifest.state_arrays = arrays;
    const Share saved = filled(flat_share(model, world.rank(), world.size(), arrays), model, step);
    write(world, folder, manifest, saved.shards, 0, count % 2 == 0 ? 2 : 1);
    for (const Index ranks : {1, world.size(), 3}) {
      Share back = flat_share(model, world.rank() % ranks, ranks, arrays);
      const auto found = search(back.shards);
      ASSERT_TRUE(found) << all_of(problems);
      EXPECT_EQ(found->manifest.state_arrays, arrays);
      read(*found, back.shards);
      EXPECT_EQ(wrong_values(back, model, step), 0) << count << " arrays, " << ranks << " ranks";
    }
    const auto found = search();
    require_saved_values(world, *found, saved.shards);
    float& last = saved.shards.back().arrays.back().values[0];
    if (world.is_root()) last = -last;
    EXPECT_TRUE(contains(
        error_of(ExitCode::files, [&] { require_saved_values(world, *found, saved.shards); }),
        "what was loaded has the hash"));
  }
}

TEST_F(RoundTrip, ShardsWithOtherArraysThanTheManifestNamesAreRefused) {
  const auto model = small_model();
  const Share share = flat_share(model, world.rank(), world.size(), {{"master"}, {"momentum"}});
  const std::string text = error_of(
      ExitCode::other, [&] { write(world, folder, manifest_at(1, model), share.shards, 0); });
  EXPECT_TRUE(contains(text, "other state arrays than its manifest names")) << text;
  EXPECT_FALSE(search());
}

TEST_F(RoundTrip, EveryBitPatternSurvives) {
  const std::vector<Parameter> model{{"odd.values", {6}}};
  std::vector<float> values{0.0F,
                            -0.0F,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::denorm_min(),
                            std::nanf("0x123"),
                            -1.5F};
  std::vector<StateShard> mine;
  if (world.is_root()) mine = {shard_of("odd.values", {{0, 6}}, {values, values, values})};
  write(world, folder, manifest_at(1, model), mine, 0);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  std::vector<float> back(6);
  const std::vector<StateShard> wanted{{"odd.values", {{0, 6}}, {{"first_moment", back}}}};
  read(*found, wanted);
  EXPECT_EQ(0, std::memcmp(values.data(), back.data(), sizeof(float) * 6));
}

TEST_F(RoundTrip, RangesFarApartAndNearAreBothRight) {
  constexpr Index elements = 3'000'017;
  const std::vector<Parameter> model{{"large", {elements}}};
  const Share share = filled(flat_share(model, world.rank(), world.size()), model, 0);
  write(world, folder, manifest_at(0, model), share.shards, 0);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  Share wanted;
  std::vector<Range> ranges;
  for (Index i = 0; i < 900; ++i) ranges.push_back({i * 3001, 1 + i % 11});
  ranges.push_back({elements - 1, 1});
  add_shard(wanted, model[0], ranges);
  read(*found, wanted.shards);
  EXPECT_EQ(wrong_values(wanted, model, 0), 0);
}

TEST_F(RoundTrip, WhatIsNotThereIsNamed) {
  save(world, folder, 1, 0);
  const auto found = search();
  ASSERT_TRUE(found);
  std::vector<float> room(10);
  const std::vector<StateShard> beyond{{"ln_f.bias", {{40, 10}}, {{"master", room}}}};
  const std::string text = error_of(ExitCode::files, [&] { read(*found, beyond); });
  EXPECT_TRUE(contains(text, "holds no element 48 of ln_f.bias, wanted with [40, 50)")) << text;
  const std::vector<StateShard> unknown{{"ln_g.bias", {{0, 10}}, {{"master", room}}}};
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { read(*found, unknown); }), "ln_g.bias"));
  const std::vector<StateShard> no_array{{"ln_f.bias", {{0, 10}}, {{"momentum", room}}}};
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { read(*found, no_array); }),
                       "holds no state array momentum, wanted of ln_f.bias"));
}

TEST_F(RoundTrip, ParametersOfAnotherModelThanTheRecordedOneAreRefused) {
  save(world, folder, 1, 0);
  const auto find = [&](const std::vector<Parameter>& model) {
    problems.clear();
    const auto model_of = [&](const Manifest&) { return model; };
    const bool is_found = newest(world, folder, model_of, problems).has_value();
    EXPECT_EQ(verify(folder, model_of).empty(), is_found);
    return is_found;
  };
  std::vector<Parameter> model = small_model();
  EXPECT_TRUE(find(model));
  model[2].shape = {13, 40};
  EXPECT_FALSE(find(model));
  EXPECT_TRUE(contains(all_of(problems),
                       "manifest.h5: its parameter 2 is h.0.attn.c_attn.weight [13, 39], but the "
                       "model that it records has h.0.attn.c_attn.weight [13, 40]"))
      << all_of(problems);
  model = small_model();
  std::swap(model[0], model[1]);
  EXPECT_FALSE(find(model));
  model = small_model();
  model.pop_back();
  EXPECT_FALSE(find(model));
  EXPECT_TRUE(contains(all_of(problems),
                       "4 is ln_f.bias [48], but the model that it records has "
                       "nothing more"))
      << all_of(problems);
  model = small_model();
  model.push_back({"more", {1}});
  EXPECT_FALSE(find(model));
}

TEST_F(RoundTrip, HolesAndOverlapsAreRefused) {
  const auto model = small_model();
  Share share = filled(flat_share(model, world.rank(), world.size()), model, 1);
  Share hole = share;
  if (world.is_root()) hole.shards.erase(hole.shards.begin());
  const auto saving = [&](const Share& s) {
    return error_of(ExitCode::other,
                    [&] { write(world, folder, manifest_at(1, model), s.shards, 0); });
  };
  EXPECT_TRUE(contains(saving(hole), "wte.weight"));
  if (world.size() > 1) {
    if (world.is_root()) add_shard(share, model[4], {{0, 1}});
    EXPECT_TRUE(contains(saving(share), "ln_f.bias"));
  }
  EXPECT_FALSE(search());
  EXPECT_TRUE(problems.empty()) << all_of(problems);
}

}  // namespace

}  // namespace kzero::checkpoint
