// Wrong uses: datasets, samplers, loaders, pictures and their transforms. Broken files are in files_test.cpp.
#include "tern/data/data.h"

#include "wrong_use.h"

namespace tern::data {
namespace {

TensorDataset four_samples() { return TensorDataset(ones({4, 2}), arange(4)); }

/// Takes the first batch.
void take_batch(const DataLoaderOptions& options) { (void)DataLoader(four_samples(), options).begin(); }

std::vector<WrongUse> dataset_rows() {
  const std::type_index value = typeid(ValueError), index = typeid(IndexError), shape = typeid(ShapeError);
  return {
      {"tensors_none",
       value,
       [] { TensorDataset(std::vector<Tensor>{}); },
       {"TensorDataset: ", "at least one"}},
      {"tensors_of_two_sizes",
       shape,
       [] {
         TensorDataset(ones({4, 2}), arange(3));
       },
       {"TensorDataset: size mismatch", "tensor 0 is [4, 2]", "tensor 1 is [3]"}},
      {"tensors_of_no_dimensions",
       shape,
       [] { TensorDataset(tensor(1.0)); },
       {"TensorDataset: tensor 0 has no dimensions"}},
      {"sample_index", index, [] { four_samples().get(4); }, {"TensorDataset: index 4", "4 samples"}},
      {"sample_negative_index",
       index,
       [] { four_samples().get(-1); },
       {"TensorDataset: index -1", "4 samples"}},
      {"batch_of_nothing", value, [] { four_samples().get_batch({}); }, {"empty"}},
      {"subset_index",
       index,
       [] {
         Subset(four_samples(), {0, 9});
       },
       {"Subset: index 9 (number 1 of the list)", "4 samples"}},
      {"concat_none", value, [] { ConcatDataset({}); }, {"ConcatDataset: ", "empty"}},
      {"null_dataset",
       value,
       [] { DataLoader(std::shared_ptr<TensorDataset>()); },
       {"dataset", "null pointer"}},
      {"split_counts",
       value,
       [] {
         random_split(four_samples(), {3, 2});
       },
       {"random_split: the lengths sum to 5", "4 samples"}},
      {"split_fractions",
       value,
       [] {
         random_split(four_samples(), {0.5, 0.4});
       },
       {"random_split: the fractions sum to 0.9, not to 1"}},
      {"split_of_both_kinds",
       value,
       [] {
         random_split(four_samples(), {2, 0.5});
       },
       {"random_split: lengths must be all counts (integers) or all fractions"}},
      {"collate_of_two_shapes",
       typeid(DataError),
       [] {
         default_collate({Example{ones({2}), 0}, Example{ones({3}), 1}});
       },
       {"default_collate: ", "[2] at entry 0 and [3] at entry 1", "collate_fn"}},
  };
}

std::vector<WrongUse> loader_rows() {
  const std::type_index value = typeid(ValueError);
  return {
      {"batch_size", value, [] { take_batch({.batch_size = 0}); }, {"DataLoader: batch_size", "0"}},
      {"workers", value, [] { take_batch({.num_workers = -1}); }, {"DataLoader: num_workers", "256", "-1"}},
      {"prefetch",
       value,
       [] { take_batch({.num_workers = 1, .prefetch_factor = 0}); },
       {"DataLoader: prefetch_factor", "0"}},
      {"shuffle_and_sampler",
       value,
       [] { take_batch({.shuffle = true, .sampler = SequentialSampler(4)}); },
       {"DataLoader: ", "sampler", "shuffle"}},
      {"sampler_beyond_the_dataset",
       typeid(IndexError),
       [] { take_batch({.batch_size = 9, .sampler = SequentialSampler(9)}); },
       {"epoch 0", "batch 0", "index 4", "4 samples"}},
      {"failing_worker",
       typeid(ShapeError),
       [] {
         struct Failing {
           int64_t size() const { return 2; }
           Example get(int64_t) const { return {matmul(ones({2, 3}), ones({4, 5})), 0}; }
         };
         (void)DataLoader(Failing(), {.num_workers = 2}).begin();
       },
       {"epoch 0", "batch 0", "matmul: inner sizes differ", "[2, 3]"}},
      {"state_of_another_loader",
       value,
       [] {
         DataLoader loader(four_samples(), {.batch_size = 2});
         loader.load_state({.batch_size = 3, .dataset_size = 4});
       },
       {"DataLoader", "batch", "3", "2"}},
      {"epoch", value, [] { DataLoader(four_samples()).set_epoch(-1); }, {"epoch", "negative", "-1"}},
      {"random_sampler_of_nothing",
       value,
       [] { RandomSampler(0, {.replacement = true, .num_samples = 3}); },
       {"RandomSampler: ", "3"}},
      {"weights_all_zero",
       value,
       [] {
         WeightedRandomSampler({0, 0}, 1);
       },
       {"WeightedRandomSampler: ", "0"}},
      {"weights_negative",
       value,
       [] {
         WeightedRandomSampler({1, -1}, 1);
       },
       {"WeightedRandomSampler: ", "-1"}},
  };
}

std::vector<WrongUse> picture_rows() {
  const std::type_index value = typeid(ValueError), shape = typeid(ShapeError), data = typeid(DataError);
  return {
      {"normalize_lengths",
       value,
       [] {
         Normalize({0.5, 0.5}, {1.0});
       },
       {"Normalize: ", "2", "1"}},
      {"normalize_deviation", value, [] { Normalize({0.5}, {0.0}); }, {"Normalize: ", "0"}},
      {"normalize_bytes",
       typeid(DTypeError),
       [] {
         Normalize({0.5}, {1.0})(zeros({1, 4, 4}, {.dtype = uint8, .device = kCPU}));
       },
       {"Normalize: ", "uint8", "ToFloat"}},
      {"resize_size", value, [] { Resize(0); }, {"Resize: ", "0"}},
      {"crop_too_large",
       value,
       [] {
         Random random(1, 0, 0);
         RandomCrop(8)(zeros({1, 4, 4}, {.device = kCPU}), random);
       },
       {"RandomCrop: ", "8", "4"}},
      {"flip_probability", value, [] { RandomHorizontalFlip(1.5); }, {"RandomHorizontalFlip: ", "1.5"}},
      {"grayscale_channels", value, [] { Grayscale(2); }, {"Grayscale: ", "2"}},
      {"tensor_to_image_shape",
       shape,
       [] {
         tensor_to_image(zeros({2, 4, 4}, {.device = kCPU}));
       },
       {"tensor_to_image: ", "[2, 4, 4]"}},
      {"image_without_pixels",
       value,
       [] {
         encode_png({.height = 2, .width = 2, .channels = 3, .pixels = {1, 2}});
       },
       {"encode_png: ", "2"}},
      {"decode_channels", value, [] { decode_image({}, "x.png", {.channels = 2}); }, {"channels", "2"}},
      {"decode_of_nothing", data, [] { decode_image({}, "x.png"); }, {"'x.png'", "byte 0"}},
      {"decode_of_text",
       data,
       [] {
         const Bytes text = {'h', 'e', 'l', 'l', 'o'};
         decode_image(text, "x.png");
       },
       {"'x.png'", "PNG", "JPEG"}},
  };
}

TERN_WRONG_USES(Datasets, dataset_rows);
TERN_WRONG_USES(Loaders, loader_rows);
TERN_WRONG_USES(Pictures, picture_rows);

}  // namespace
}  // namespace tern::data
