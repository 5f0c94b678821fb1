// The folder of a training run: making it, and which weights an earlier run left there. What fit() writes
// into it is in train/trainer.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tern::cli {

/// The folder that a run writes to: the one that was given or, without one, the first of run, run-2, run-3
/// and so on that is not there yet. Making it is what takes it, so that runs that start at once get one each.
class RunFolder {
 public:
  /// Throws IoError.
  explicit RunFolder(const std::filesystem::path& given);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Removes the folder if it was made here and nothing was written to it.
  ~RunFolder();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  bool made_ = false;
};

/// The files of a model's weights.
struct WeightFiles {
  WeightFiles(const std::filesystem::path& folder, const std::string& model)
      : pt(folder / (model + ".pt")), safetensors(folder / (model + ".safetensors")) {}

  std::filesystem::path pt;           ///< the state dict in PyTorch's format
  std::filesystem::path safetensors;  ///< the same as safetensors
};

/// A file that a run of `model` in `folder` would replace or remove: of an earlier run, or of the names that
/// its weights will have; empty where there is none. Throws IoError where the folder cannot be read.
std::filesystem::path file_in_the_way(const std::filesystem::path& folder, const std::string& model);

/// The weights of the run whose checkpoint is in `folder`. Files of their names that hold something else are
/// not that run's. Reads no numbers and throws nothing: what cannot be read is nobody's.
std::vector<std::filesystem::path> weights_of_run_in(const std::filesystem::path& folder);

}  // namespace tern::cli
