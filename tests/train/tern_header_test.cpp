// tern/tern.h alone: what programs save and load with is there without another include.
#include "tern/tern.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace tern {
namespace {

TEST(TernHeader, HasEveryFormatOfFiles) {
  TemporaryFolder folder;
  const StateDict state{{"w", ones({2, 3})}, {"b", full({2}, 0.5)}};
  save_npy(state["w"], folder / "w.npy");
  EXPECT_EQ(load_npy(folder / "w.npy").sum().item<double>(), 6);
  save_npz(state, folder / "m.npz");
  EXPECT_EQ(load_npz(folder / "m.npz")["b"].sum().item<double>(), 1);
  save_safetensors(state, folder / "m.safetensors");
  EXPECT_EQ(load_safetensors(folder / "m.safetensors").tensors["w"].sum().item<double>(), 6);
  EXPECT_EQ(io::save_safetensors_shards(state, folder / "s.safetensors", /*max_bytes=*/16).size(), 3u);
  EXPECT_EQ(load(folder.path() / "s.safetensors.index.json")["b"].as_tensor().sum().item<double>(), 1);

  nn::Linear net(3, 2);
  save_module(net, folder / "net.pt");
  const StateDict parts = state_dict_of(load(folder / "net.pt", {.weights_only = false}));
  EXPECT_EQ(parts["weight"].shape(), IntArrayRef({2, 3}));

  optim::SGD optimizer(net.parameters(), {.lr = 0.5, .momentum = 0.9});
  const Value states = train::to_value(optimizer.state_dict());
  EXPECT_EQ(train::to_optimizer_state(states).param_groups.size(), 1u);
  EXPECT_EQ(states["param_groups"][0]["lr"].as_float(), 0.5);
}

}  // namespace
}  // namespace tern
