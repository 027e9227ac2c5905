// Safetensors files: valid files are read and written exactly. Invalid files are refused with the
// violated rule.
#include "convert/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <random>

#include "convert/safetensors_writer.hpp"
#include "unit/convert/support.hpp"

namespace kzero::convert {

namespace {

SafetensorsHeader parsed(const std::string& bytes, const std::string& name) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), static_cast<Index>(bytes.size()), name);
}

std::string reason_for(const std::string& bytes) {
  return error_of(ExitCode::files, [&] { parsed(bytes, "bad.safetensors"); });
}

struct Bad {
  std::string bytes;
  std::string reason;
};

/// A header for two tensors in 24 bytes of data. `entry` is the entry of the second tensor.
std::string with_second(const std::string& entry, std::size_t data_bytes) {
  return file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":)" + entry + "}",
                 data_bytes);
}

std::vector<Bad> header_cases() {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string invalid_utf8 = good;
  invalid_utf8[2] = '\xFF';
  return {{"", "too few for a header"},
          {"1234567", "too few for a header"},
          {std::string(8, '\xFF'), "larger than the format allows"},
          {std::string("\x01\xE1\xF5\x05\0\0\0\0", 8), "larger than the format allows"},
          {std::string("\x01\0\0\0\0\0\0\0", 8), "ends beyond the file"},
          {std::string(8, '\0'), "not a JSON object"},
          {file_of("{", 0), "not a JSON object"},
          {file_of("[]", 0), "not a JSON object"},
          {file_of("null", 0), "not a JSON object"},
          {file_of(std::string(100000, '['), 0), "not a JSON object"},
          {file_of(R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", 0),
           "not a JSON object"},
          {file_of(R"({"\u001b[31mred":1})", 0), "tensor \\x1b[31mred is not"},
          {file_of(R"({"__metadata__":{"format":1}})", 0), "format that is not a text"},
          {file_of(invalid_utf8, 8), "not a JSON object"},
          {file_of(good.substr(0, good.size() - 1), 8), "not a JSON object"},
          {file_of(good + "{}", 8), "not a JSON object"},
          {file_of(good, 7), "ends at byte 8 of 7 bytes of data"},
          {file_of(good, 9), "1 bytes after the last tensor do not belong to any tensor"},
          {file_of(R"({"a":5})", 0), "a is not described by an object"},
          {file_of("{}", 4), "4 bytes after the last tensor"}};
}

std::vector<Bad> tensor_cases() {
  const auto b = [](const std::string& dtype, const std::string& shape,
                    const std::string& offsets) {
    return with_second(
        R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}",
        24);
  };
  return {{b("7", "[4]", "[8,24]"), "b has no \"dtype\""},
          {b("\"F33\"", "[4]", "[8,24]"), "b is of unknown dtype F33"},
          {b("\"F32\"", "4", "[8,24]"), "b has no list \"shape\""},
          {b("\"F32\"", "[-4]", "[8,24]"), "\"shape\" holds something that is not a count"},
          {b("\"F32\"", "[4.0]", "[8,24]"), "\"shape\" holds something that is not a count"},
          {b("\"F32\"", "[\"4\"]", "[8,24]"), "\"shape\" holds something that is not a count"},
          {b("\"F32\"", "[9223372036854775808]", "[8,24]"), "not a count"},
          {b("\"F32\"", "[99999999999999999999999]", "[8,24]"), "not a count"},
          {b("\"F32\"", "[4294967296,4294967296]", "[8,24]"), "b is impossibly large"},
          {b("\"F32\"", "[9223372036854775807,2]", "[8,24]"), "b is impossibly large"},
          {b("\"F32\"", "[4]", "[8]"), "\"data_offsets\" is not [begin, end]"},
          {b("\"F32\"", "[4]", "[8,24,24]"), "\"data_offsets\" is not [begin, end]"},
          {b("\"F32\"", "[4]", "[24,8]"), "\"data_offsets\" is not [begin, end]"},
          {b("\"F32\"", "[4]", "[-8,8]"), "not a count"},
          {b("\"F32\"", "[4]", "[8,28]"), "b ends at byte 28 of 24"},
          {b("\"F32\"", "[4]", "[8,9223372036854775807]"), "b ends at byte 9223372036854775807"},
          {b("\"F32\"", "[5]", "[8,24]"), "b has 16 bytes, its shape and dtype need 20"},
          {b("\"F16\"", "[4]", "[8,24]"), "b has 16 bytes, its shape and dtype need 8"},
          {b("\"F32\"", "[4]", "[4,20]"), "b overlaps the one before it"},
          {b("\"F32\"", "[2]", "[0,8]"), "overlaps the one before it"},
          {b("\"F32\"", "[3]", "[12,24]"), "a gap of 4 bytes before tensor b"},
          {with_second("{}", 24), "b has no \"dtype\""},
          {with_second(R"({"dtype":"F32","data_offsets":[8,24]})", 24), "b has no list \"shape\""},
          {with_second(R"({"dtype":"F32","shape":[4]})", 24), "b has no list \"data_offsets\""}};
}

TEST(SafetensorsHeader, EveryBrokenRuleIsNamed) {
  for (const auto& cases : {header_cases(), tensor_cases()}) {
    for (const Bad& bad : cases) {
      const std::string text = reason_for(bad.bytes);
      EXPECT_TRUE(text.starts_with("bad.safetensors: ")) << text;
      EXPECT_TRUE(contains(text, bad.reason)) << bad.reason << "\n" << text;
    }
  }
}

TEST(SafetensorsHeader, NoBytesCrashTheReader) {
  const std::string good =
      with_second(R"({"dtype":"BF16","shape":[2,4],"data_offsets":[8,24]})", 24);
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good.substr(0, round % 3 == 0 ? random() % good.size() : good.size());
    for (int change = 0; change < 3 && !bytes.empty(); ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      for (const Tensor& tensor : parsed(bytes, "x").tensors) {
        EXPECT_LE(tensor.begin, tensor.end);
        EXPECT_LE(tensor.end, static_cast<Index>(bytes.size()));
      }
    } catch (const Error&) {
    }
  }
}

TEST(SafetensorsHeader, EmptyAndScalarTensorsAndMetadataAreGood) {
  const std::string bytes = file_of(
      R"({"__metadata__":{"format":"pt"},"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}}   )",
      4);
  const auto [tensors, metadata] = parsed(bytes, "good");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "scalar");
  EXPECT_EQ(tensors[0].elements(), 1);
  EXPECT_EQ(tensors[1].elements(), 0);
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

using SafetensorsDisk = FolderTest;

TEST_F(SafetensorsDisk, SixteenBitTypesAreWidened) {
  std::string bytes = file_of(R"({"h":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},)"
                              R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[6,12]},)"
                              R"("i":{"dtype":"I16","shape":[1],"data_offsets":[12,14]}})",
                              14);
  const std::uint16_t values[] = {0x3C00, 0xC000, 0x7C00, 0x3F80, 0xC040, 0xFF80, 1};
  std::memcpy(bytes.data() + bytes.size() - 14, values, 14);
  const auto path = folder / "half.safetensors";
  store(path, bytes);
  const SafetensorsFile file(path);
  std::vector<float> three(3);
  file.read(*file.find("h"), {0, 3}, three);
  EXPECT_EQ(three, (std::vector<float>{1.0F, -2.0F, INFINITY}));
  file.read(*file.find("b"), {0, 3}, three);
  EXPECT_EQ(three, (std::vector<float>{1.0F, -3.0F, -INFINITY}));
  std::vector<float> one(1);
  file.read(*file.find("b"), {1, 1}, one);
  EXPECT_EQ(one.front(), -3.0F);
  const auto text = error_of(ExitCode::files, [&] { file.read(*file.find("i"), {0, 1}, one); });
  EXPECT_TRUE(contains(text, "tensor i is of dtype I16")) << text;
  EXPECT_TRUE(contains(text, path.string())) << text;
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST_F(SafetensorsDisk, WhatIsWrittenInChunksIsRead) {
  const auto path = folder / "out.safetensors";
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7};
  SafetensorsWriter writer(path, {{"x.weight", {2, 3}}, {"x.bias", {1}}});
  writer.append(std::span(values).first(2));
  writer.append(std::span(values).subspan(2, 5));
  EXPECT_FALSE(fs::exists(path));
  writer.finish();
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.find("x.weight")->shape, (std::vector<Index>{2, 3}));
  EXPECT_EQ(file.find("x.weight")->begin % 8, 0);
  std::vector<float> back(4);
  file.read(*file.find("x.weight"), {2, 4}, back);
  EXPECT_EQ(back, (std::vector<float>{3, 4, 5, 6}));
  file.read(*file.find("x.bias"), {0, 1}, std::span(back).first(1));
  EXPECT_EQ(back[0], 7);
}

TEST_F(SafetensorsDisk, AnUnfinishedFileLeavesNoTrace) {
  const auto path = folder / "out.safetensors";
  const std::vector<float> values(3);
  {
    SafetensorsWriter writer(path, {{"x", {4}}});
    writer.append(values);
    error_of(ExitCode::other, [&] { writer.finish(); });
    error_of(ExitCode::other, [&] { writer.append(values); });
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(SafetensorsDisk, FilesThatCannotBeReadOrWrittenAreNamed) {
  const auto missing = (folder / "missing.safetensors").string();
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { SafetensorsFile{missing}; }), missing));
  EXPECT_TRUE(
      contains(error_of(ExitCode::files, [&] { SafetensorsFile{folder}; }), folder.string()));
  const auto beyond = folder / "none" / "out.safetensors";
  EXPECT_TRUE(
      contains(error_of(ExitCode::files, [&] { SafetensorsWriter(beyond, {}); }), beyond.string()));
  store(folder / "empty", "");
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { SafetensorsFile{folder / "empty"}; }),
                       "too few for a header"));
}

TEST_F(SafetensorsDisk, AFileThatBecomesShorterIsAnError) {
  const auto path = folder / "short.safetensors";
  SafetensorsWriter writer(path, {{"x", {1000}}});
  writer.append(std::vector<float>(1000));
  writer.finish();
  const SafetensorsFile file(path);
  fs::resize_file(path, 1000);
  std::vector<float> values(1000);
  const auto text = error_of(ExitCode::files, [&] {
    file.read(*file.find("x"), {0, 1000}, values);
  });
  EXPECT_TRUE(contains(text, path.string() + ": became shorter while it was read")) << text;
}

TEST_F(SafetensorsDisk, APipeIsRefusedWithoutWaiting) {
  const auto path = folder / "pipe.safetensors";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto text = error_of(ExitCode::files, [&] { SafetensorsFile{path}; });
  EXPECT_TRUE(contains(text, "pipe.safetensors: is a pipe")) << text;
}

TEST_F(SafetensorsDisk, WhatTheWriterWroteIsRecognised) {
  const auto path = folder / "out.safetensors";
  EXPECT_FALSE(is_written_by_kzero(path));
  SafetensorsWriter(path, {}).finish();
  EXPECT_TRUE(is_written_by_kzero(path));
  EXPECT_FALSE(is_written_by_kzero(fs::path(KZERO_TEST_DATA) / "reference" / "even.safetensors"));
}

TEST(SafetensorsReference, FilesFromThePythonLibraryAreRead) {
  const SafetensorsFile file(fs::path(KZERO_TEST_DATA) / "reference" / "even.safetensors");
  EXPECT_EQ(file.tensors().size(), 28U);
  const Tensor* tensor = file.find("h.0.attn.c_attn.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<Index>{64, 192}));
  std::vector<float> values(tensor->elements());
  file.read(*tensor, {0, tensor->elements()}, values);
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.05, 0.002);
}

}  // namespace

}  // namespace kzero::convert
