// Links in a model's folder lead to files of the model only.
#include "convert/model_file.hpp"

#include "convert/adapter.hpp"
#include "convert/architecture.hpp"
#include "convert/origin.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weight_files.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

class ModelFileTest : public FolderTest {
 protected:
  ModelFileTest() {
    fs::create_directories(snapshot);
    fs::create_directories(cache / "blobs");
    fs::create_directories(model / "inside");
    store(folder / "secret", "private");
    store(model / "plain", "");
    store(model / "inside" / "file", "");
    store(cache / "blobs" / "0123abcd", "");
  }

  static void link(const fs::path& to, const fs::path& file) {
    fs::remove(file);
    fs::create_symlink(to, file);
  }

  static std::string refusal(const std::function<void()>& use) {
    return error_of(ExitCode::files, use);
  }

  const fs::path model = folder / "model", cache = folder / "hub" / "models--a--b",
                 snapshot = cache / "snapshots" / "89ab";
};

TEST_F(ModelFileTest, FilesOfTheFolderAreFound) {
  EXPECT_EQ(model_file(model, "plain"), model / "plain");
  EXPECT_EQ(model_file(model, "missing"), model / "missing");
  for (const char* to :
       {"plain", "inside/file", "../model/plain", "missing", "../missing", "name"}) {
    link(to, model / "name");
    EXPECT_EQ(model_file(model, "name"), model / "name") << to;
  }
  link("plain", model / "name");
  link(model / "name", model / "again");
  EXPECT_EQ(model_file(model, "again"), model / "again");
  link(model, folder / "other name");
  EXPECT_EQ(model_file(folder / "other name", "again"), folder / "other name" / "again");
}

TEST_F(ModelFileTest, LinksThatLeaveTheFolderAreRefused) {
  link(folder / "secret", model / "inside" / "out");
  store(folder / "model2", "");
  for (const fs::path& to :
       {folder / "secret", fs::path("../secret"), fs::path("inside/out"), folder / "model2"}) {
    link(to, model / "name");
    const std::string text = refusal([&] { model_file(model, "name"); });
    EXPECT_TRUE(contains(text, (model / "name").string() + ": is a link to ")) << text;
    EXPECT_TRUE(contains(text, "outside the model's folder")) << text;
  }
}

TEST_F(ModelFileTest, ASnapshotOfACacheHasItsBlobs) {
  link("../../blobs/0123abcd", snapshot / "config.json");
  EXPECT_EQ(model_file(snapshot, "config.json"), snapshot / "config.json");
  fs::create_directories(snapshot / "sub");
  link("../../../blobs/0123abcd", snapshot / "sub" / "config.json");
  EXPECT_EQ(model_file(snapshot / "sub", "config.json"), snapshot / "sub" / "config.json");
  link(cache / "blobs" / "0123abcd", model / "name");  // as older hub programs filled folders
  EXPECT_EQ(model_file(model, "name"), model / "name");
  // Other places of the cache, and blobs that are links themselves.
  store(cache / "secret", "private");
  link("../../secret", snapshot / "config.json");
  EXPECT_NE(refusal([&] { model_file(snapshot, "config.json"); }), "");
  link(folder / "secret", cache / "blobs" / "0123abcd");
  link("../../blobs/0123abcd", snapshot / "config.json");
  EXPECT_NE(refusal([&] { model_file(snapshot, "config.json"); }), "");
  fs::remove_all(cache / "blobs");
  link(folder, cache / "blobs");
  link("../../blobs/secret", snapshot / "config.json");
  EXPECT_NE(refusal([&] { model_file(snapshot, "config.json"); }), "");
}

// Each reader of a folder refuses a link that leaves it.
TEST_F(ModelFileTest, EveryReaderOfAFolderUsesTheRule) {
  const auto refuses = [&](const std::string& name, const std::function<void()>& use) {
    link(folder / "secret", model / name);
    const std::string text = refusal(use);
    EXPECT_TRUE(contains(text, name + ": is a link to ")) << name << ": " << text;
    fs::remove(model / name);
  };
  refuses("config.json", [&] { load_config(model); });
  refuses("model.safetensors", [&] { find_weight_files(model); });
  refuses("model.safetensors.index.json", [&] { find_weight_files(model); });
  refuses("merges.txt", [&] { tokenizer_files(model); });
  refuses("tokenizer.json", [&] { find_tokenizer(model.string(), "", {}); });
  refuses("tokenizer.json", [&] { find_tokenizer("", model, {}); });
  deck::Data data;
  data.format = deck::DataFormat::llmc;
  data.files = {(model / "*.bin").string()};
  refuses("tokenizer.json", [&] { find_tokenizer("", "", data); });
  refuses("adapter_model.safetensors", [&] { AdapterWeights(model, {}, {}, {}); });
  store(model / "model.safetensors", "");
  refuses("config.json", [&] { find_weight_files(model); });
  refuses("tokenizer_config.json", [&] { tokenizer_files(model); });
  store(model / "config.json", "{}");
  refuses("generation_config.json", [&] { gather_origin({}, model.string()); });
  fs::create_directory(folder / "elsewhere");
  store(folder / "elsewhere" / "tool.jinja", "private");
  link(folder / "elsewhere", model / checkpoint::templates_name);
  EXPECT_NE(refusal([&] { tokenizer_files(model); }), "");
  fs::remove(model / checkpoint::templates_name);
  fs::remove(model / "config.json");
  store(model / "model.safetensors.index.json", R"({"weight_map": {"a": "part.safetensors"}})");
  refuses("part.safetensors", [&] { find_weight_files(model / "model.safetensors.index.json"); });
}

// A user may name any file, and may have linked it.
TEST_F(ModelFileTest, AFileThatTheUserNamesMayBeALink) {
  link(reference("even"), model / "mine.safetensors");
  EXPECT_EQ(find_weight_files(model / "mine.safetensors").files.size(), 1U);
  EXPECT_NO_THROW(weights_of(model / "mine.safetensors", even_model()));
}

}  // namespace

}  // namespace kzero::convert
