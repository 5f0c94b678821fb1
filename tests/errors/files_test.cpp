// Wrong uses: files that are missing, forbidden, cut short, broken, hostile or of another kind, and values
// read as something else than they are.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tern/data/bytes.h"
#include "tern/data/data.h"
#include "tern/data/idx.h"
#include "tern/io/file.h"
#include "tern/io/npy.h"
#include "tests/support/temporary_folder.h"
#include "wrong_use.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

const fs::path& folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

/// Writes a file and returns its path.
fs::path file(const std::string& name, std::string_view bytes) {
  const fs::path path = folder() / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// A checkpoint as save() writes it.
std::string checkpoint() { return text_of(save_to_buffer({{"w", ones({4})}})); }

/// The same with the first `from` replaced by `to`, of the same length.
std::string patched(std::string bytes, std::string_view from, std::string_view to) {
  return bytes.replace(bytes.find(from), from.size(), to);
}

std::string safetensors(const std::string& header, size_t data_nbytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data_nbytes, '\0');
}

std::vector<WrongUse> reading_rows() {
  const std::type_index io = typeid(IoError), broken = typeid(CheckpointError);
  return {
      {"missing", io, [] { load(folder() / "none.pt"); }, {"none.pt'", "No such file"}},
      {"folder",
       broken,
       [] { load(folder()); },
       {"loading '" + folder().string(), "neither an index of shards", "give the file in it"}},
      {"mapped_memory",
       typeid(TypeError),
       [] { load_from_buffer(save_to_buffer(1), {.mmap = true}); },
       {"f must be a file path in order to use the mmap argument", "load it without mmap"}},
      {"mapped_pickle",
       broken,
       [] { load(file("plain.pkl", "\x80\x02K\x01."), {.mmap = true}); },
       {"mmap can only be used with files saved with", "load it once without mmap and save() it"}},
      {"device_file", io, [] { load("/dev/null"); }, {"'/dev/null'", "regular file"}},
      {"path_through_a_file",
       io,
       [] { load(file("plain.txt", "x") / "model.pt"); },
       {"plain.txt/model.pt'", "Not a directory"}},
      {"name_too_long", io, [] { load(std::string(5000, 'x')); }, {"File name too long"}},
      {"empty", broken, [] { load(file("empty.pt", "")); }, {"loading '", "empty.pt'", "empty"}},
      {"text",
       broken,
       [] { load(file("text.pt", "hello, this is no checkpoint")); },
       {"text.pt'", "the file is plain text"}},
      {"html",
       broken,
       [] { load(file("page.pt", "<!DOCTYPE html><html><body>404</body></html>")); },
       {"page.pt'", "an HTML page instead of the file itself"}},
      {"git_lfs",
       broken,
       [] { load(file("lfs.pt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")); },
       {"lfs.pt'", "a Git LFS pointer", "git lfs pull"}},
      {"gzip",
       broken,
       [] { load(file("packed.pt", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10))); },
       {"packed.pt'", "gzip-compressed", "unpack it first"}},
      {"hdf5",
       broken,
       [] { load(file("keras.h5", "\x89HDF\r\n\x1a\n????????")); },
       {"keras.h5'", "an HDF5 file"}},
      {"cut_at_the_end",
       broken,
       [] {
         const std::string whole = checkpoint();
         load(file("cut.pt", whole.substr(0, whole.size() - 1)));
       },
       {"cut.pt'", "zip"}},
      {"cut_in_the_middle",
       broken,
       [] {
         const std::string whole = checkpoint();
         load(file("half.pt", whole.substr(0, whole.size() / 2)));
       },
       {"half.pt'", "zip", "cut"}},
      {"bad_sum",
       broken,
       [] {
         load(file("sum.pt",
                   patched(checkpoint(), std::string("\0\0\x80\x3f", 4), std::string("\0\0\x81\x3f", 4))));
       },
       {"sum.pt'", "CRC"}},
      {"bad_opcode",
       broken,
       [] { load(file("opcode.pkl", std::string("\x80\x02\xff.", 4))); },
       {"opcode.pkl'", "byte 2", "opcode"}},
      {"pickle_cut",
       broken,
       [] { load(file("cut.pkl", std::string("\x80\x02]q", 4))); },
       {"cut.pkl'", "byte"}},
      {"pickle_empty_stack",
       broken,
       [] { load(file("stack.pkl", std::string("\x80\x02.", 3))); },
       {"stack.pkl'", "byte 2", "stack"}},
      {"forbidden_global",
       broken,
       [] {
         load(file("attack.pkl", std::string("\x80\x02"
                                             "cos\nsystem\nX\x04\0\0\0true\x85R.",
                                             26)));
       },
       {"attack.pkl'", "os.system", "weights_only"}},
      {"safetensors_by_name_alone",
       broken,
       [] { load(file("named.safetensors", checkpoint())); },
       {"named.safetensors'", "named .safetensors", "zip archive"}},
      {"safetensors_header_length",
       broken,
       [] { load_safetensors(file("length.safetensors", std::string("\xff\xff\xff\0\0\0\0\0{}", 10))); },
       {"length.safetensors'", "header"}},
      {"safetensors_json",
       broken,
       [] { load_safetensors(file("json.safetensors", safetensors("{\"x\":", 0))); },
       {"json.safetensors'", "header"}},
      {"safetensors_offsets",
       broken,
       [] {
         load_safetensors(file("offsets.safetensors",
                               safetensors(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)));
       },
       {"offsets.safetensors'", "'x'", "4", "8"}},
      {"safetensors_short",
       broken,
       [] {
         load_safetensors(file("short.safetensors",
                               safetensors(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)));
       },
       {"short.safetensors'", "8", "4"}},
      {"safetensors_of_a_checkpoint",
       broken,
       [] { load_safetensors(file("model.pt", checkpoint())); },
       {"model.pt'", "this is no safetensors file: it is a zip archive", "load()"}},
      {"memory", broken, [] { load_from_buffer({}); }, {"loading from memory", "empty"}},
      {"train_checkpoint",
       broken,
       [] { train::Checkpoint::load(file("weights.pt", checkpoint())); },
       {"weights.pt'", "checkpoint"}},
  };
}

std::vector<WrongUse> writing_rows() {
  const std::type_index io = typeid(IoError), value = typeid(ValueError);
  return {
      {"missing_folder",
       io,
       [] { save(ones({2}), folder() / "no" / "such" / "x.pt"); },
       {"saving '", "x.pt'", "no/such' does not exist", "unchanged"}},
      {"onto_a_folder",
       io,
       [] { save(ones({2}), folder()); },
       {"saving '" + folder().string(), "it is a folder", "unchanged"}},
      {"full_disk", io, [] { save(ones({2}), "/dev/full"); }, {"'/dev/full'", "regular file"}},
      {"lazy_parameter",
       value,
       [] {
         save({{"w", nn::LazyLinear(2).bias}}, folder() / "lazy.pt");
       },
       {"['w'] cannot be saved: it is an uninitialized parameter of a lazy layer", "one batch first"}},
      {"lazy_parameter_as_safetensors",
       value,
       [] {
         save_safetensors_to_buffer({{"w", nn::LazyLinear(2).bias}});
       },
       {"Attempted to use an uninitialized parameter", "one batch first"}},
      {"lazy_parameter_as_npy",
       value,
       [] { save_npy(nn::LazyLinear(2).bias, folder() / "lazy.npy"); },
       {"Attempted to use an uninitialized parameter", "one batch first"}},
      {"unwritable_folder", io, [] { save(ones({2}), "/proc/tern.pt"); }, {"'/proc/tern.pt'"}},
      {"safetensors_missing_folder",
       io,
       [] {
         save_safetensors({{"x", ones({2})}}, folder() / "no" / "x.safetensors");
       },
       {"x.safetensors'", "no' does not exist"}},
      {"pickle_named_safetensors",
       value,
       [] { save(ones({2}), folder() / "x.safetensors"); },
       {"saving '", "x.safetensors': a file of this name must be safetensors", "save_safetensors()"}},
      {"npy_named_safetensors",
       value,
       [] { save_npy(ones({2}), folder() / "x.safetensors"); },
       {"x.safetensors'", "save_safetensors()"}},
      {"npz_named_safetensors",
       value,
       [] {
         save_npz({{"x", ones({2})}}, folder() / "x.safetensors");
       },
       {"x.safetensors'", "save_safetensors()"}},
      {"undefined_tensor", value, [] { save_to_buffer(Tensor()); }, {"undefined"}},
      {"undefined_tensor_says_where",
       value,
       [] {
         save(Value({{"model", Value({{"w", Tensor()}})}}), folder() / "x.pt");
       },
       {"saving '", "x.pt'", "['model']['w']", "undefined"}},
      {"safetensors_undefined",
       value,
       [] {
         save_safetensors_to_buffer({{"x", Tensor()}});
       },
       {"save_safetensors: ", "'x'", "undefined"}},
      {"safetensors_reserved_name",
       value,
       [] {
         save_safetensors_to_buffer({{"__metadata__", ones({1})}});
       },
       {"save_safetensors: ", "'__metadata__'", "reserved"}},
      {"data_on_a_full_disk",
       io,
       [] { data::write_file("/dev/full", std::vector<uint8_t>(1 << 16)); },
       {"cannot write '/dev/full'", "No space left on device"}},
      {"data_missing_folder",
       io,
       [] { data::write_file((folder() / "no" / "x.bin").string(), {}); },
       {"cannot create '", "x.bin'", "No such file or directory"}},
  };
}

std::vector<WrongUse> tree_value_rows() {
  const std::type_index type = typeid(TypeError);
  static const Value tree = {{"epoch", 3}, {"model", {{"w", ones({2})}}}, {"names", Value::list({"a", 2})}};
  return {
      {"number_as_text", type, [] { tree["epoch"].as_str(); }, {"['epoch']", "str", "int"}},
      {"tensor_as_number",
       type,
       [] { tree["model"]["w"].as_int(); },
       {"['model']['w']", "is a tensor of 2 elements of float32, not one int"}},
      {"text_as_number", type, [] { tree["names"][0].as_int(); }, {"['names'][0]", "int", "str"}},
      {"many_as_one_number", type, [] { tree["model"]["w"].as_float(); }, {"['model']['w']", "float"}},
      {"list_as_dict", type, [] { tree["names"].as_dict(); }, {"['names']", "dict", "list"}},
      {"mixed_as_state_dict", type, [] { tree.as_state_dict(); }, {"epoch", "tensor"}},
      {"missing_name", typeid(IndexError), [] { tree["modle"].as_dict(); }, {"'modle'", "'model'"}},
      {"missing_element", typeid(IndexError), [] { tree["names"][2].as_int(); }, {"['names']", "2"}},
      {"push_back_to_a_dict", type, [] { tree["model"].push_back(1); }, {"['model'] is a dict, not a list"}},
      {"null_pointer",
       typeid(ValueError),
       [] { Value(static_cast<const char*>(nullptr)); },
       {"Value: the text is a null pointer", "None is nullptr", "environment variable"}},
      {"digits", typeid(ValueError), [] { Value::integer_from_decimal("12x"); }, {"12x"}},
  };
}

std::vector<WrongUse> data_rows() {
  const std::type_index broken = typeid(DataError), io = typeid(IoError);
  auto view = [](std::string_view bytes) {
    return data::ByteView(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  };
  return {
      {"file_missing",
       io,
       [] { data::read_file((folder() / "none").string()); },
       {"cannot open '", "No such file"}},
      {"file_is_a_folder", io, [] { data::read_file(folder().string()); }, {folder().string(), "directory"}},
      {"file_too_large",
       broken,
       [] { data::read_file(file("large.bin", std::string(100, 'x')).string(), 10); },
       {"large.bin'", "limit of 10 bytes"}},
      {"idx_magic",
       broken,
       [view] { data::parse_idx(view(std::string_view("\0\0\x0d\3????????????", 16)), 3, "images"); },
       {"'images': byte 0: wrong magic 0x00000d03", "expected 0x00000803"}},
      {"idx_header",
       broken,
       [view] { data::parse_idx(view(std::string_view("\0\0\x08\1\0\0", 6)), 1, "labels"); },
       {"'labels': byte 6", "header"}},
      {"idx_short",
       broken,
       [view] { data::parse_idx(view(std::string_view("\0\0\x08\1\0\0\0\5ab", 10)), 1, "labels"); },
       {"'labels': byte 10", "promises 5 values, 2 bytes"}},
      {"idx_long",
       broken,
       [view] { data::parse_idx(view(std::string_view("\0\0\x08\1\0\0\0\1ab", 10)), 1, "labels"); },
       {"'labels': byte 9", "1 bytes follow the 1 values"}},
      {"idx_sizes_overflow",
       broken,
       [view] {
         data::parse_idx(
             view(std::string_view("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16)), 3,
             "images");
       },
       {"'images': byte 12", "2^64"}},
      {"gzip_not",
       broken,
       [view] { data::gunzip(view("plain text"), "x.gz"); },
       {"'x.gz': byte 0: not a gzip stream"}},
      {"gzip_cut",
       broken,
       [view] { data::gunzip(view(std::string_view("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b", 11)), "x.gz"); },
       {"'x.gz': byte 11: the gzip stream ends early", "cut"}},
      {"gzip_broken",
       broken,
       [view] {
         data::gunzip(view(std::string_view("\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff", 14)), "x.gz");
       },
       {"'x.gz': byte", "broken gzip stream"}},
      {"mnist_missing",
       broken,
       [] { data::MNIST(folder().string()); },
       {"MNIST", "train-images-idx3-ubyte", folder().string()}},
      {"cifar_missing",
       broken,
       [] { data::CIFAR10(folder().string()); },
       {"CIFAR10", "data_batch_1.bin", folder().string()}},
      {"image_folder_missing",
       io,
       [] { data::ImageFolder((folder() / "none").string()); },
       {"ImageFolder", "none'", "No such file"}},
      {"image_folder_without_classes",
       broken,
       [] {
         fs::create_directories(folder() / "flat");
         data::ImageFolder((folder() / "flat").string());
       },
       {"ImageFolder", "flat'", "folder"}},
      {"picture_broken",
       broken,
       [] {
         file("pictures/cat/broken.png", "\x89PNG\r\n\x1a\nbroken");
         data::ImageFolder((folder() / "pictures").string()).get(0);
       },
       {"broken.png'", "byte"}},
      {"picture_missing",
       io,
       [] { data::read_image((folder() / "none.png").string()); },
       {"none.png'", "No such file"}},
  };
}

TERN_WRONG_USES(Reading, reading_rows);
TERN_WRONG_USES(Writing, writing_rows);
TERN_WRONG_USES(TreeValues, tree_value_rows);
TERN_WRONG_USES(DataFiles, data_rows);

/// The hostile files that are refused: a typed error that names the file. What must be refused is checked in
/// tests/io/corpus_test.cpp.
TEST(HostileFiles, ErrorsAreTypedAndNameTheFile) {
  const char* shared = std::getenv("TERN_SHARED_DIR");
  const fs::path bad = shared ? fs::path(shared) / "checkpoints" / "bad" : fs::path();
  if (!shared || !fs::is_directory(bad))
    GTEST_SKIP() << "TERN_SHARED_DIR does not name a folder with checkpoints/bad/";
  int refused = 0;
  for (const auto& entry : fs::recursive_directory_iterator(bad)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".tsv") continue;
    SCOPED_TRACE(entry.path().filename().string());
    try {
      load(entry.path());
    } catch (const CheckpointError& error) {
      ++refused;
      EXPECT_NE(error.message().find("'" + entry.path().string() + "': "), std::string::npos) << error.what();
      EXPECT_GT(error.message().size(), entry.path().string().size() + 25) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another error: " << error.what();
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tern
