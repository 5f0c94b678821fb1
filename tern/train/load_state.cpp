// Where in a checkpoint the model is.
#include "tern/train/load_state.h"

#include "tern/base/check.h"
#include "tern/io/find_tensors.h"

namespace tern::train {

nn::IncompatibleKeys load_state_dict(nn::Module& module, const Value& checkpoint,
                                     const nn::LoadStateDictOptions& options) {
  const auto found = io::find_state_dict(checkpoint);
  if (!found) return module.load_state_dict(checkpoint.as_state_dict(), options);
  std::string place;
  for (const std::string& key : found->keys) place += fmt::format("[\"{}\"]", key);
  TERN_CHECK(place.empty() || options.prefix == "auto", CheckpointError,
             "Error(s) in loading state_dict for {}:\n\tThe checkpoint is a dict around the state dict: give "
             "its entry {}, or load with .prefix = \"auto\".",
             module.class_name(), place);
  return module.load_state_dict(found->dict.as_state_dict(), options);
}

}  // namespace tern::train
