#include "targets.h"

#include <cmath>

#include "tern/base/error.h"
#include "tern/io/find_tensors.h"
#include "tern/io/module_tree.h"
#include "tern/io/npy.h"
#include "tern/io/pickle_listing.h"
#include "tern/io/serialize.h"
#include "tern/io/tensor_numbers.h"
#include "tern/io/torch_file.h"

namespace tern::fuzz {

namespace {

using Bytes = std::span<const std::byte>;

/// No CRC, so that changed bytes get past it, and limits that keep a run short.
LoadOptions options(bool weights_only) {
  LoadOptions result;
  result.weights_only = weights_only;
  result.verify = false;
  result.map_location = "cpu";
  result.limits.tensor_bytes = uint64_t{64} << 20;
  result.limits.pickle_bytes = uint64_t{1} << 20;
  return result;
}

template <class Body>
void answered(Body&& body) {
  try {
    body();
  } catch (const Error&) {
  }
}

void look_at(const Value& root) {
  (void)root.str(2000);
  for (const io::FoundTensor& found : io::find_tensors(root, 100'000))
    if (found.tensor.defined() && io::has_numbers(found.tensor) && found.tensor.numel() < (1 << 16))
      (void)io::summarize_numbers(found.tensor);
  if (auto found = io::find_state_dict(root)) (void)found->dict.str(100);
  if (is_module_object(root)) (void)state_dict_of(root);
}

/// What was read can be written, and comes back the same.
void write_again(const Value& root) {
  for (SaveFormat format : {SaveFormat::Zip, SaveFormat::Legacy})
    answered([&] {
      SaveOptions save_options;
      save_options.format = format;
      std::vector<std::byte> bytes = save_to_buffer(root, save_options);
      LoadOptions again = options(/*weights_only=*/false);
      again.verify = true;
      (void)load_from_buffer(bytes, again);
    });
}

template <class Reader>
void read_both_ways(const Reader& reader) {
  for (bool weights_only : {true, false})
    answered([&] {
      Value root = reader(options(weights_only)).root;
      answered([&] { look_at(root); });
      if (!weights_only) write_again(root);
    });
}

void run_pickle(Bytes bytes) {
  answered([&] { io::list_pickle(bytes, [](const io::PickleLine&) { return true; }); });
  read_both_ways([&](const LoadOptions& o) { return io::read_plain_pickle(*io::view_memory(bytes), o); });
}

void run_zip(Bytes bytes) {
  read_both_ways([&](const LoadOptions& o) { return io::read_checkpoint(io::view_memory(bytes), o); });
}

void run_legacy(Bytes bytes) {
  read_both_ways([&](const LoadOptions& o) { return io::read_torch_stream(*io::view_memory(bytes), o); });
}

void run_tar(Bytes bytes) {
  read_both_ways([&](const LoadOptions& o) { return io::read_torch_tar(io::view_memory(bytes), o); });
}

void run_safetensors(Bytes bytes) {
  answered([&] {
    SafetensorsFile file = load_safetensors_from_buffer(bytes);
    std::vector<std::byte> written = save_safetensors_to_buffer(file.tensors, file.metadata);
    (void)load_safetensors_from_buffer(written);
  });
}

void run_npy(Bytes bytes) {
  answered([&] {
    Tensor tensor = io::read_npy(*io::view_memory(bytes), options(/*weights_only=*/true));
    if (io::has_numbers(tensor)) (void)io::summarize_numbers(tensor);
    io::MemorySink sink;
    io::write_npy(tensor, sink);
    (void)io::read_npy(*io::view_memory(sink.bytes()), options(/*weights_only=*/true));
  });
}

constexpr Target kTargets[] = {{"pickle", run_pickle},           {"zip", run_zip},
                               {"legacy", run_legacy},           {"tar", run_tar},
                               {"safetensors", run_safetensors}, {"npy", run_npy}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace tern::fuzz
