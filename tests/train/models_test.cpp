// The networks of the program: sizes, and being known again from their weights.
#include "tern/train/models.h"

#include <gtest/gtest.h>

#include "tern/base/error.h"
#include "tern/ops/creation.h"

namespace tern::train {
namespace {

TEST(Models, LeNetHasTheKnownSizes) {
  nn::AnyModule net = make_model("lenet", {});
  int64_t parameters = 0;
  for (const Tensor& p : net->parameters()) parameters += p.numel();
  EXPECT_EQ(parameters, 61706);
  EXPECT_EQ(net(zeros({2, 1, 28, 28})).shape(), Shape({2, 10}));
  EXPECT_EQ(net->state_dict().begin()->first, "conv1.weight");
}

TEST(Models, OtherPictures) {
  for (const char* name : {"lenet", "mlp"}) {
    for (int64_t side : {12, 20, 28, 32, 64}) {
      nn::AnyModule net = make_model(name, {3, side, side, 7});
      EXPECT_EQ(net(zeros({2, 3, side, side})).shape(), Shape({2, 7}));
      const StateDict dict = net->state_dict();
      EXPECT_EQ(recognize_model(dict), name);
      const PictureShape shape = picture_shape(name, dict);
      EXPECT_EQ(shape.channels, 3);
      EXPECT_EQ(shape.height, side);
      EXPECT_EQ(shape.classes, 7);
      EXPECT_EQ(load_model(name, {3, side, side, 7}, dict)(zeros({2, 3, side, side})).shape(), Shape({2, 7}));
    }
  }
  EXPECT_EQ(make_model("lenet", {1, 30, 41, 4})(zeros({1, 1, 30, 41})).shape(), Shape({1, 4}));
}

TEST(Models, WhatCannotBe) {
  EXPECT_THROW(make_model("resnet", {}), ValueError);
  EXPECT_THROW(make_model("lenet", {1, 11, 28, 10}), ValueError);
  EXPECT_THROW(make_model("lenet", {0, 28, 28, 10}), ValueError);
  EXPECT_THROW(make_model("mlp", {1, 28, 28, 0}), ValueError);
  EXPECT_EQ(recognize_model(StateDict{{"fc.weight", zeros({1})}}), "");
  EXPECT_EQ(recognize_model(StateDict{{"fc1.weight", zeros({1})}, {"encoder.weight", zeros({1})}}), "");
  StateDict broken = make_model("lenet", {})->state_dict();
  broken.insert("fc1.weight", zeros({120, 401}));
  EXPECT_THROW(picture_shape("lenet", broken), CheckpointError);
  broken.insert("fc1.weight", zeros({120}));
  EXPECT_THROW(picture_shape("lenet", broken), CheckpointError);
}

}  // namespace
}  // namespace tern::train
