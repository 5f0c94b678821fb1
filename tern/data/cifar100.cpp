// CIFAR-100 from a folder of binary files.
#include "tern/data/cifar100.h"

#include <utility>

#include "tern/data/cifar_binary.h"
#include "tern/data/rows.h"

namespace tern::data {
namespace {

// As in fine_label_names.txt and coarse_label_names.txt, which are published with the files.
std::vector<std::string> fine_classes() {
  return {"apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
          "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
          "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
          "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
          "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
          "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
          "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
          "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
          "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
          "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
          "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
          "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
          "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
          "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
          "table",       "tank",          "telephone", "television", "tiger",        "tractor",
          "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
          "willow_tree", "wolf",          "woman",     "worm"};
}

std::vector<std::string> coarse_classes() {
  return {"aquatic_mammals",
          "fish",
          "flowers",
          "food_containers",
          "fruit_and_vegetables",
          "household_electrical_devices",
          "household_furniture",
          "insects",
          "large_carnivores",
          "large_man-made_outdoor_things",
          "large_natural_outdoor_scenes",
          "large_omnivores_and_herbivores",
          "medium_mammals",
          "non-insect_invertebrates",
          "people",
          "reptiles",
          "small_mammals",
          "trees",
          "vehicles_1",
          "vehicles_2"};
}

ImageTensors load_cifar100(const std::string& root, bool train, ImageOptions options, CIFAR100Labels labels) {
  CifarRecords records =
      read_cifar(root, {"CIFAR100", "cifar-100-binary", {{"coarse label", 20}, {"fine label", 100}}},
                 {train ? "train.bin" : "test.bin"});
  const bool fine = labels == CIFAR100Labels::kFine;
  return ImageTensors(take_cifar_images(records), detail::tensor_from_list(records.labels[fine ? 1 : 0]),
                      fine ? fine_classes() : coarse_classes(), std::move(options),
                      {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}}, "CIFAR100");
}

}  // namespace

CIFAR100::CIFAR100(const std::string& root, bool train, ImageOptions options, CIFAR100Labels labels)
    : ImageTensors(load_cifar100(root, train, std::move(options), labels)) {}

}  // namespace tern::data
