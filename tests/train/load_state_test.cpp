// Modules from checkpoints of any form.
#include "tern/train/load_state.h"

#include <gmock/gmock.h>

#include "tern/base/error.h"
#include "tern/nn/linear.h"
#include "tern/nn/state_prefix.h"
#include "tern/ops/creation.h"

namespace tern::train {
namespace {

using testing::HasSubstr;

StateDict some_weights() { return {{"weight", full({3, 2}, 0.5)}, {"bias", full({3}, 2.0)}}; }

TEST(LoadState, TheRoot) {
  nn::Linear net(2, 3);
  EXPECT_TRUE(load_state_dict(net, some_weights()).empty());
  EXPECT_EQ(net.bias.detach().to_vector<float>(), std::vector<float>(3, 2));
}

TEST(LoadState, AnEntryOfTheRoot) {
  for (const char* key : {"state_dict", "model", "net"}) {
    nn::Linear net(2, 3);
    const Value file{{"epoch", 3}, {key, nn::add_prefix(some_weights(), "module.")}, {"best", 0.5}};
    EXPECT_THAT(
        [&] { load_state_dict(net, file); },
        testing::ThrowsMessage<CheckpointError>(testing::AllOf(
            HasSubstr(std::string("give its entry [\"") + key + "\"]"), HasSubstr(".prefix = \"auto\""))));
    EXPECT_TRUE(load_state_dict(net, file, {.prefix = "auto"}).empty()) << key;
    EXPECT_EQ(net.bias.detach().to_vector<float>(), std::vector<float>(3, 2));
  }
}

TEST(LoadState, SeveralDictsThatMayBeTheModel) {
  nn::Linear net(2, 3);
  Value file{{"generator", some_weights()}, {"critic", Value{{"ema", some_weights()}}}};
  for (const char* prefix : {"", "auto"})
    EXPECT_THAT([&] { load_state_dict(net, file, {.prefix = prefix}); },
                testing::ThrowsMessage<CheckpointError>(
                    HasSubstr("several dicts that may be the model: [\"generator\"], [\"critic\"][\"ema\"]; "
                              "give the one that is meant")));
  EXPECT_TRUE(load_state_dict(net, file["generator"]).empty());
  for (int i = 0; i < 7; ++i) file["net" + std::to_string(i)] = some_weights();
  EXPECT_THAT([&] { load_state_dict(net, file); },
              testing::ThrowsMessage<CheckpointError>(HasSubstr("[\"net2\"] and 4 more; give")));
}

TEST(LoadState, NoStateDictAtAll) {
  nn::Linear net(2, 3);
  EXPECT_THROW(load_state_dict(net, Value::list({1, 2})), Error);
}

}  // namespace
}  // namespace tern::train
