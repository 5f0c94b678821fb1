// Listing and reading of folders of pictures.
#include "tern/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "tern/base/check.h"
#include "tern/data/image.h"
#include "tern/data/transforms.h"

namespace tern::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

/// The pictures in a folder and those below it, links to folders followed, but for one to a folder that it is
/// in (`within`).
void list_pictures(const fs::path& folder, std::vector<fs::path>& within, std::vector<fs::path>& pictures,
                   int64_t& others) {
  fs::path real = fs::canonical(folder);
  if (std::find(within.begin(), within.end(), real) != within.end()) return;
  within.push_back(std::move(real));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory())
      list_pictures(entry.path(), within, pictures, others);
    else if (entry.is_regular_file() && !is_hidden(entry.path()))
      is_picture(entry.path()) ? pictures.push_back(entry.path()) : static_cast<void>(++others);
  }
  within.pop_back();
}

}  // namespace

std::shared_ptr<const ImageFolder::Files> ImageFolder::list(const std::string& root) {
  auto files = std::make_shared<Files>();
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
      if (entry.is_directory() && !is_hidden(entry.path()))
        files->classes.push_back(entry.path().filename().string());
    }
    std::sort(files->classes.begin(), files->classes.end());
    for (size_t label = 0; label < files->classes.size(); ++label) {
      std::vector<fs::path> paths, within;
      list_pictures(fs::path(root) / files->classes[label], within, paths, files->other);
      TERN_CHECK(!paths.empty(), DataError,
                 "ImageFolder: no .png, .jpg or .jpeg files in the class folder '{}/{}'", root,
                 files->classes[label]);
      std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
        const auto folder = a.parent_path().native().compare(b.parent_path().native());
        return folder != 0 ? folder < 0 : a.filename().native() < b.filename().native();
      });
      for (const fs::path& path : paths)
        files->samples.emplace_back(path.string(), static_cast<int64_t>(label));
    }
  } catch (const fs::filesystem_error& error) {
    TERN_THROW(IoError, "ImageFolder: cannot read '{}': {}", error.path1().string(), error.code().message());
  }
  TERN_CHECK(
      !files->classes.empty(), DataError,
      "ImageFolder: '{}' has no folders in it; there must be one for each class, with the pictures inside",
      root);
  return files;
}

ImageFolder::ImageFolder(const std::string& root, ImageFolderOptions options)
    : files_(list(root)),
      channels_(options.channels),
      pipeline_(std::move(options.image), {}, "ImageFolder") {
  TERN_CHECK(channels_ == 0 || channels_ == 1 || channels_ == 3, ValueError,
             "ImageFolder: channels must be 0 (as in the file), 1 or 3, got {}", channels_);
}

Example ImageFolder::sample(int64_t index, const RandomKey& key) const {
  detail::check_sample_index(index, size(), "ImageFolder");
  const auto& [path, label] = files_->samples[static_cast<size_t>(index)];
  const Tensor picture = image_to_tensor(read_image(path, {.channels = channels_}));
  Random random = key.random(index);
  return {pipeline_.finish(pipeline_.transform(picture, random)), label};
}

}  // namespace tern::data
