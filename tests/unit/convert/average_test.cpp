// Averages of checkpoints: their weights, their sums, and the checkpoint that is made of one.
#include "convert/average.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "convert/import.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using Numbers = std::vector<double>;
using Steps = std::vector<Index>;

void expect_near(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 4e-16) << i;
}

TEST(AverageWeights, AMeanAndNumbersAreUsedAsTheyAre) {
  EXPECT_EQ(average_weights("mean", Steps{7, 3, 3}), Numbers(3, 1.0 / 3));
  EXPECT_EQ(average_weights("0.5,-0.25,.75", Steps{1, 1, 1}), (Numbers{0.5, -0.25, 0.75}));
  EXPECT_EQ(average_weights("0.5,0.5000000009", Steps{1, 2}), (Numbers{0.5, 0.5000000009}));
  error_of(ExitCode::usage, [] { average_weights("0.5,0.5000000011", Steps{1, 2}); });
}

// The averages of the factors of a decay that is carried out step by step.
Numbers weights_by_steps(double (*factor)(double), const Steps& steps) {
  constexpr Index parts = 20'000;  // of a step
  const auto length = static_cast<double>((steps.back() - steps.front()) * parts);
  Numbers shares{1};
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const Index begin = (steps[i - 1] - steps.front()) * parts,
                end = (steps[i] - steps.front()) * parts;
    double sum = 0;
    for (Index at = begin; at < end; ++at) sum += factor((static_cast<double>(at) + 0.5) / length);
    shares.push_back(sum / static_cast<double>(end - begin));
  }
  shares.push_back(0);
  Numbers weights;
  for (std::size_t i = 0; i < steps.size(); ++i) weights.push_back(shares[i] - shares[i + 1]);
  return weights;
}

TEST(AverageWeights, ADecayCountsAChangeAsOftenAsItsRate) {
  const Steps steps{100, 110, 115, 140};
  const auto linear = [](double x) { return 1 - x; };
  const auto cosine = [](double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; };
  const auto root = [](double x) { return 1 - std::sqrt(x); };
  const std::pair<std::string, double (*)(double)> decays[] = {
      {"linear", linear}, {"cosine", cosine}, {"1-sqrt", root}};
  for (const auto& [name, factor] : decays) {
    const Numbers found = average_weights(name, steps), expected = weights_by_steps(factor, steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-7) << name << ' ' << i;
      EXPECT_GT(found[i], 0) << name << ' ' << i;
    }
    EXPECT_NEAR(std::accumulate(found.begin(), found.end(), 0.0), 1, 4e-16) << name;
  }
  expect_near(average_weights("linear", Steps{0, 10, 20, 30, 40}), {.125, .25, .25, .25, .125});
  for (const char* name : {"linear", "cosine"})
    expect_near(average_weights(name, Steps{3, 4}), {0.5, 0.5});
  expect_near(average_weights("1-sqrt", Steps{3, 4}), {2.0 / 3, 1.0 / 3});
}

class AverageTest : public FolderTest {
 protected:
  /// A checkpoint of one tensor of eight values.
  checkpoint::Found part(Index step, const std::vector<float>& values) {
    checkpoint::Manifest manifest = manifest_for(even_model());
    manifest.step = step;
    manifest.parameters = {{"ln_f.weight", {4, 2}}};
    manifest.state_arrays = {{param::master_weights}, {"momentum"}};
    std::vector<float> master = values, momentum(8, 1.0F);
    const checkpoint::StateShard shard{
        "ln_f.weight", {{0, 8}}, {{param::master_weights, master}, {"momentum", momentum}}};
    checkpoint::write(self, folder / "run", manifest, std::span(&shard, 1), 0);
    return open(folder / "run");
  }

  checkpoint::Found open(const fs::path& path) {
    std::vector<std::string> problems;
    return checkpoint::open(
        self, path, [](const checkpoint::Manifest& read) { return read.parameters; }, problems);
  }

  static std::vector<float> values_of(const ExportSource& source) {
    std::vector<float> values(8);
    source.read(source.parameters.front(), {0, 8}, values);
    return values;
  }

  grid::Group self = own_group(MPI_COMM_SELF);
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST_F(AverageTest, ProductsAreRoundedBeforeTheyAreAdded) {
  const std::vector<float> a{0.7F, -1, 1, -0.0F, 0x1p-149F, 3, 5, 7},
      b{-0.3F, 9, 1, -0.0F, 0x1p-149F, -1, 2, 1};
  const std::vector<checkpoint::Found> parts{part(1, a), part(2, b)};
  // 0.1 * 9 - 0.9 is 0, or with a fused multiplication what 0.1 is above a tenth.
  const Numbers weights{0.3, 0.7}, tenths{0.9, 0.1};
  for (const Numbers& w : {weights, tenths}) {
    std::vector<float> expected(8);
    for (std::size_t i = 0; i < 8; ++i) {
      const volatile double first = w[0] * a[i], second = w[1] * b[i];  // rounded here
      expected[i] = static_cast<float>(first + second);
    }
    EXPECT_EQ(bits_of(values_of(averaged_weights(parts, w, param::master_weights))),
              bits_of(expected));
  }
  EXPECT_EQ(bits_of(values_of(averaged_weights(std::span(parts).first(1), {1}, "master"))),
            bits_of(a));
  EXPECT_EQ(values_of(averaged_weights(parts, weights, "momentum")), std::vector<float>(8, 1.0F));
}

TEST_F(AverageTest, PartsThatAreNotFiniteAreNamed) {
  std::vector<float> values(8, 1.0F), bad = values;
  bad[5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<checkpoint::Found> parts{part(1, values), part(2, bad)};
  const ExportSource average = averaged_weights(parts, {1, 0}, param::master_weights);
  const std::string text = error_of(ExitCode::files, [&] { values_of(average); });
  EXPECT_EQ(text, parts[1].path.string() +
                      ": ln_f.weight [2, 1] is NaN; weights have to be finite numbers");
  values.assign(8, std::numeric_limits<float>::max());
  const std::vector<checkpoint::Found> large{part(3, values)};
  const ExportSource twice = averaged_weights(large, {2}, param::master_weights);
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { values_of(twice); }),
                       "the average: ln_f.weight [0, 0] is infinity"));
}

TEST_F(AverageTest, OtherModelsAndBasesHaveNone) {
  std::vector<checkpoint::Found> parts{part(1, std::vector<float>(8)),
                                       part(2, std::vector<float>(8))};
  EXPECT_NO_THROW(require_alike(parts));
  const auto error = [&] { return error_of(ExitCode::usage, [&] { require_alike(parts); }); };
  parts[0].manifest.model.heads = 8;
  EXPECT_TRUE(contains(error(), "step_00000002: is of another model than"));
  EXPECT_TRUE(contains(error(), "(model.heads is 4, was 8)"));
  parts[0].manifest.model.heads = 4;
  parts[0].manifest.adapters = {{.rank = 2, .alpha = 4, .targets = {"c_fc"}}, 17};
  EXPECT_TRUE(contains(error(), "has other [lora] adapters than"));
  parts[1].manifest.adapters = parts[0].manifest.adapters;
  EXPECT_NO_THROW(require_alike(parts));
  parts[1].manifest.adapters->lora.alpha = 8;
  EXPECT_TRUE(contains(error(), "has other [lora] adapters than"));
  parts[1].manifest.adapters = {parts[0].manifest.adapters->lora, 18};
  EXPECT_TRUE(contains(error(), "of hash 0000000000000012, those of"));
}

// The table of the embeddings is larger than a slot of the memory through which it passes.
TEST_F(AverageTest, ACheckpointIsWrittenThroughLittleMemoryOnAllRanks) {
  const grid::Group world = own_group(MPI_COMM_WORLD);
  const fs::path shared = world.broadcast((folder / "new").string());
  const ExportSource source{
      "here",
      even_model(),
      {{"wte.weight", {1500, 1500}}, {"ln_f.bias", {3}}, {"ln_f.weight", {1}}},
      [](const checkpoint::Parameter& parameter, checkpoint::Range range, std::span<float> values) {
        const Index first = range.begin + std::ssize(parameter.name);
        std::iota(values.begin(), values.end(), static_cast<float>(first));
      }};
  write_weights(world, source, shared, manifest_for(even_model()));
  const checkpoint::Found found = open(shared);
  EXPECT_EQ(found.path.filename(), "step_00000000");
  EXPECT_EQ(param::names_of(found.manifest.state_arrays), "master");
  EXPECT_EQ(found.manifest.shard_files.size(), std::min<std::size_t>(world.size(), 3));
  for (const checkpoint::Parameter& p : source.parameters) {
    std::vector<float> values(p.elements()), expected(p.elements());
    source.read(p, {0, p.elements()}, expected);
    const checkpoint::StateShard shard{p.name, {{0, p.elements()}}, {{"master", values}}};
    checkpoint::read(found, std::span(&shard, 1));
    EXPECT_TRUE(values == expected) << p.name;
  }
  world.barrier();
}

}  // namespace

}  // namespace kzero::convert
