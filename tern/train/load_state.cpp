// Where in a checkpoint the model is.
#include "tern/train/load_state.h"

#include "tern/base/check.h"
#include "tern/io/find_tensors.h"
#include "tern/io/word_list.h"

namespace tern::train {
namespace {

/// ["ema"]["model"], as one writes it after the name of the checkpoint.
std::string place_of(const io::FoundStateDict& found) {
  std::string place;
  for (const std::string& key : found.keys) place += fmt::format("[\"{}\"]", key);
  return place;
}

[[noreturn]] void throw_several(const nn::Module& module, const std::vector<io::FoundStateDict>& found) {
  std::vector<std::string> places;
  for (const io::FoundStateDict& each : found) places.push_back(place_of(each));
  TERN_THROW(CheckpointError,
             "Error(s) in loading state_dict for {}:\n\tThe checkpoint has several dicts that may be the "
             "model: {}; give the one that is meant.",
             module.class_name(), io::some_words(places));
}

}  // namespace

nn::IncompatibleKeys load_state_dict(nn::Module& module, const Value& checkpoint,
                                     const nn::LoadStateDictOptions& options) {
  const std::vector<io::FoundStateDict> found = io::find_state_dicts(checkpoint);
  if (found.empty()) return module.load_state_dict(checkpoint.as_state_dict(), options);
  if (found.size() > 1) throw_several(module, found);
  const std::string place = place_of(found.front());
  TERN_CHECK(place.empty() || options.prefix == "auto", CheckpointError,
             "Error(s) in loading state_dict for {}:\n\tThe checkpoint is a dict around the state dict: give "
             "its entry {}, or load with .prefix = \"auto\".",
             module.class_name(), place);
  return module.load_state_dict(found.front().dict.as_state_dict(), options);
}

}  // namespace tern::train
