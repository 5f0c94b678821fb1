// Folders of runs.
#include "tern/cli/run_folder.h"

#include <algorithm>

#include "tern/base/check.h"
#include "tern/io/serialize.h"
#include "tern/train/models.h"
#include "tern/train/trainer.h"

namespace tern::cli {
namespace {

namespace fs = std::filesystem;

/// What `find` finds in a file's values; empty where that fails.
template <class Find>
std::string model_in(const fs::path& path, Find&& find) {
  try {
    return find(load(path, {.map_location = "cpu", .skip_data = true}));
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace

RunFolder::RunFolder(const fs::path& given) : path_(given) {
  std::error_code error;
  if (!given.empty()) made_ = fs::create_directories(given, error);
  for (int i = 1; path_.empty(); ++i) {
    const std::string name = i == 1 ? "run" : fmt::format("run-{}", i);
    made_ = fs::create_directory(name, error);
    if (made_ || (error && error != std::errc::file_exists)) path_ = name;
  }
  TERN_CHECK(!error, IoError, "cannot make the folder '{}': {}", path_.string(), error.message());
}

RunFolder::~RunFolder() {
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

fs::path file_in_the_way(const fs::path& folder, const std::string& model) {
  const fs::path earlier = train::earlier_run_in(folder);
  if (!earlier.empty()) return earlier;
  const WeightFiles files(folder, model);
  for (const fs::path& path : {files.pt, files.safetensors})
    if (std::error_code none; fs::exists(path, none)) return path;
  return {};
}

std::vector<fs::path> weights_of_run_in(const fs::path& folder) {
  std::vector<fs::path> found;
  const std::string model = model_in(folder / train::kCheckpointName, [](const Value& checkpoint) {
    return checkpoint["settings"]["model"].as_str();
  });
  const auto& known = train::model_names();
  if (std::find(known.begin(), known.end(), model) == known.end()) return found;
  const auto recognize = [](const Value& value) { return train::recognize_model(value.as_state_dict()); };
  const WeightFiles files(folder, model);
  for (const fs::path& path : {files.pt, files.safetensors})
    if (std::error_code none; fs::is_regular_file(path, none) && model_in(path, recognize) == model)
      found.push_back(path);
  return found;
}

}  // namespace tern::cli
