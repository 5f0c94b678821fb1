// Saving when things go wrong: power cuts at every operation, full disks, folders without permission,
// processes that are killed, two that write one path. Faults put into single operations are in file_test.cpp.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "io_testing.h"
#include "tern/io/file.h"
#include "tern/io/npy.h"

namespace tern {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

/// A file system in memory that remembers what has reached the disk. After a power cut a file has what was
/// last synced, with any part of what was written since; of the changes to names since the last sync of the
/// folder the first few have happened. `cut_after` operations later the power goes.
class CutSystem final : public io::FileSystem {
 public:
  struct PowerCut {};
  struct Inode {
    std::string content;
    std::string synced;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  CutSystem(int cut_after, bool unnamed) : left_(cut_after), unnamed_(unnamed) {}

  /// A file that is safely there.
  void put(const std::filesystem::path& path, const std::string& content) {
    names_[path.string()] = std::make_shared<Inode>(Inode{content, content});
    synced_names_ = names_;
  }

  std::unique_ptr<io::OutputFile> create_unnamed(const std::filesystem::path&) override {
    if (!unnamed_) return nullptr;
    step();
    return std::make_unique<File>(*this, std::make_shared<Inode>());
  }
  void name_file(io::OutputFile& file, const std::filesystem::path& path) override {
    step();
    change([name = path.string(), inode = static_cast<File&>(file).inode](Names& names) {
      names[name] = inode;
    });
  }
  std::unique_ptr<io::OutputFile> create(const std::filesystem::path& path) override {
    step();
    auto inode = std::make_shared<Inode>();
    change([name = path.string(), inode](Names& names) { names[name] = inode; });
    return std::make_unique<File>(*this, inode);
  }
  void prepare_to_replace(io::OutputFile&, const std::filesystem::path&) override { step(); }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    step();
    change([from = from.string(), to = to.string()](Names& names) {
      names[to] = names.at(from);
      names.erase(from);
    });
  }
  void remove(const std::filesystem::path& path) override {
    if (left_ <= 0) throw IoError("the power is off");
    step();
    change([name = path.string()](Names& names) { names.erase(name); });
  }
  void remove_abandoned(const std::filesystem::path&) noexcept override {}
  void sync_folder(const std::filesystem::path&) override {
    step();
    synced_names_ = names_;
    pending_.clear();
  }

  /// Every content that `path` may have when the power is back; "<absent>" when it may be gone.
  std::set<std::string> after_cut(const std::filesystem::path& path) const {
    std::set<std::string> contents;
    Names names = synced_names_;
    for (size_t happened = 0;; ++happened) {
      auto found = names.find(path.string());
      if (found == names.end()) {
        contents.insert("<absent>");
      } else {
        const Inode& inode = *found->second;
        contents.insert(inode.synced);
        for (size_t length : {size_t{0}, inode.content.size() / 2, inode.content.size()})
          if (length > inode.synced.size()) contents.insert(inode.content.substr(0, length));
      }
      if (happened == pending_.size()) return contents;
      pending_[happened](names);
    }
  }

 private:
  struct File final : io::OutputFile {
    File(CutSystem& system_, std::shared_ptr<Inode> inode_) : system(system_), inode(std::move(inode_)) {}
    void write(std::span<const std::byte> bytes) override {
      system.step();
      inode->content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void sync() override {
      system.step();
      inode->synced = inode->content;
    }
    CutSystem& system;
    std::shared_ptr<Inode> inode;
  };
  void step() {
    if (left_-- <= 0) throw PowerCut();
  }
  void change(std::function<void(Names&)> change) {
    change(names_);
    pending_.push_back(std::move(change));
  }

  int left_;
  bool unnamed_;
  Names names_, synced_names_;
  std::vector<std::function<void(Names&)>> pending_;
};

TEST(PowerCut, LeavesTheOldFileOrTheNew) {
  TemporaryFolder folder;  // AtomicFile looks at the real folder, but writes into the simulated one
  const auto path = folder / "a.pt";
  const std::string old_content = "old", new_content(3 << 20, 'n');
  for (bool unnamed : {true, false}) {
    for (int cut_after = 0;; ++cut_after) {
      CutSystem system(cut_after, unnamed);
      system.put(path, old_content);
      bool finished = false;
      try {
        io::AtomicFile file(path, system);
        file.write(new_content.substr(0, 2 << 20));
        file.write(new_content.substr(2 << 20));
        file.commit();
        finished = true;
      } catch (const CutSystem::PowerCut&) {
      }
      for (const std::string& content : system.after_cut(path))
        EXPECT_TRUE(content == new_content || (content == old_content && !finished))
            << content.size() << " bytes, beginning with " << content.substr(0, 10)
            << ", after a cut at operation " << cut_after;
      if (finished) break;
      ASSERT_LT(cut_after, 30);
    }
  }
}

/// Runs `body` in a child process, which must end by itself; its standard output comes back.
template <class Body>
std::string in_child(Body&& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = error.what();
    }
    [[maybe_unused]] ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  size_t length = 0;
  for (ssize_t got; (got = ::read(ends[0], text.data() + length, text.size() - length)) > 0;)
    length += static_cast<size_t>(got);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child was killed";
  text.resize(length);
  return text;
}

bool become_another_than_root() { return ::geteuid() != 0 || ::setuid(65534) == 0; }

TEST(SaveFaults, NoRoomUnderALimitOfTheFileSize) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  save(1, path);
  Tensor big = floats(std::vector<float>(1 << 20));
  std::string message = in_child([&]() -> std::string {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    save(big, path);
    return "saved";
  });
  EXPECT_EQ(message, "saving '" + path.string() +
                         "': writing failed: File too large (what was there before is unchanged)");
  EXPECT_EQ(load(path).as_int(), 1);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(SaveFaults, EveryFormatNamesThePathOnce) {
  TemporaryFolder folder;
  const StateDict big{{"w", floats(std::vector<float>(1 << 20))}};
  const StateDict wrong{{"w", Tensor::from_storage(allocate_storage(16, kCPU), DType::Complex128, {1})},
                        {"b", Tensor::from_storage(allocate_storage(2, kCPU), DType::BFloat16, {1})}};
  struct Format {
    const char* name;
    std::function<void(const StateDict&, const std::filesystem::path&)> write;
    std::string refusal;  ///< of `wrong`
  };
  const std::string no_bfloat16 =
      "save_npy: NumPy has no dtype bfloat16: convert the tensor first, or write it with save or "
      "save_safetensors";
  const Format formats[] = {
      {"a.safetensors", [](const StateDict& t, const auto& path) { save_safetensors(t, path); },
       "save_safetensors: tensor 'w' has dtype complex128, which the format lacks: save() writes it"},
      {"a.npy",
       [](const StateDict& t, const auto& path) { save_npy(t.contains("b") ? t["b"] : t["w"], path); },
       no_bfloat16},
      {"a.npz", [](const StateDict& t, const auto& path) { save_npz(t, path); },
       "array 'b': " + no_bfloat16}};
  for (const Format& format : formats) {
    const auto path = folder / format.name;
    write_text(path, "old");
    const std::string message = in_child([&]() -> std::string {
      ::signal(SIGXFSZ, SIG_IGN);
      rlimit limit{1 << 20, 1 << 20};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      format.write(big, path);
      return "saved";
    });
    EXPECT_EQ(message, "saving '" + path.string() +
                           "': writing failed: File too large (what was there before is unchanged)");
    const std::string missing = error_of<IoError>([&] { format.write(big, folder / "no" / format.name); });
    EXPECT_EQ(missing, "saving '" + (folder / "no" / format.name).string() + "': the folder '" +
                           (folder / "no").string() +
                           "' does not exist (what was there before is unchanged)");
    const std::string refused = error_of<DTypeError>([&] { format.write(wrong, path); });
    EXPECT_EQ(refused, "saving '" + path.string() + "': " + format.refusal);
    EXPECT_EQ(read_text(path), "old");
  }
  EXPECT_EQ(folder.entries(), 3u);
}

/// Runs `body` with a file system of so many MiB at `folder`; an empty text where that is not possible.
template <class Body>
std::string on_small_disk(const std::filesystem::path& folder, int mib, Body&& body) {
  return in_child([&]() -> std::string {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return "";
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "";
    if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, ("size=" + std::to_string(mib) + "m").c_str()) != 0)
      return "";
    return body();
  });
}

TEST(SaveFaults, FullDisk) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  Tensor big = floats(std::vector<float>(1 << 20));
  std::string result = on_small_disk(folder.path(), 1, [&] {
    save(1, path);
    std::string message = "saved";
    try {
      save(big, path);
    } catch (const IoError& error) {
      message = error.what();
    }
    const auto entries = std::distance(std::filesystem::directory_iterator(folder.path()), {});
    return message + "|" + std::to_string(entries) + "|" + std::to_string(load(path).as_int());
  });
  if (result.empty()) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_EQ(result,
            "saving '" + path.string() +
                "': writing failed: No space left on device (what was there before is unchanged)|1|1");
}

TEST(SaveFaults, RoomForTwoIsEnoughForMany) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  const Tensor large = floats(std::vector<float>(5 << 20));
  std::string result = on_small_disk(folder.path(), 45, [&] {
    // A replaced file may give its room back a little later.
    for (int i = 0; i < 20; ++i) save(Value::list({i, large}), path);
    return std::to_string(load(path)[0].as_int());
  });
  if (result.empty()) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_EQ(result, "19");
}

TEST(SaveFaults, WhoHoldsAReplacedFileKeepsIt) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  constexpr int64_t count = 5 << 20;
  auto filled_with = [&](float value) { return floats(std::vector<float>(count, value)); };
  save(filled_with(1), path);
  const Tensor mapped = load(path, {.mmap = true}).as_tensor();
  const auto open = io::open_file(path);
  const auto before = open->read(0, open->size());
  for (float value : {2.0f, 3.0f}) save(filled_with(value), path);
  EXPECT_EQ(elements<float>(mapped), std::vector<float>(count, 1));
  EXPECT_TRUE(open->read(0, open->size()) == before);
  EXPECT_EQ(elements<float>(load(path).as_tensor()), std::vector<float>(count, 3));
}

TEST(SaveFaults, ReadOnlyDisk) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  std::string result = on_small_disk(folder.path(), 1, [&] {
    save(1, path);
    if (::mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return std::string();
    std::string message = "saved";
    try {
      save(2, path);
    } catch (const IoError& error) {
      message = error.what();
    }
    return message + "|" + std::to_string(load(path).as_int());
  });
  if (result.empty()) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_THAT(result, HasSubstr("Read-only file system"));
  EXPECT_THAT(result, HasSubstr(path.string()));
  EXPECT_THAT(result, testing::EndsWith("|1"));
}

TEST(SaveFaults, WithoutPermission) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "closed");
  const auto path = folder / "closed/a.pt", fresh = folder / "closed/new.pt", read_only = folder / "b.pt";
  save(1, path);
  save(1, read_only);
  ASSERT_EQ(::chmod(read_only.c_str(), 0444), 0);
  ASSERT_EQ(::chmod((folder / "closed").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  std::string result = in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("cannot change the user");
    std::string messages;
    for (const auto& place : {path, fresh, read_only})
      messages += error_of<IoError>([&] { save(2, place); }) + "\n";
    return messages;
  });
  std::string expected;
  for (const auto& place : {path, fresh, read_only})
    expected += "saving '" + place.string() +
                "': " + (place == fresh ? "creating a file in the folder" : "opening for writing") +
                " failed: Permission denied (what was there before is unchanged)\n";
  EXPECT_EQ(result, expected);
  ::chmod((folder / "closed").c_str(), 0755);
  EXPECT_EQ(load(path).as_int(), 1);
  EXPECT_EQ(load(read_only).as_int(), 1);
}

TEST(SaveFaults, IntoAFolderThatMayNotBeRead) {
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0333), 0);
  const std::string result = in_child([&]() -> std::string {
    if (!become_another_than_root() || ::access(folder.path().c_str(), W_OK) != 0) return "no such user";
    save(1, folder / "a.pt");
    return error_of<IoError>([&] { load(folder.path()); });
  });
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  if (result == "no such user") GTEST_SKIP() << "no user without root's rights can be had here";
  EXPECT_EQ(result, "cannot read the folder '" + folder.path().string() + "': Permission denied");
  EXPECT_EQ(load(folder / "a.pt").as_int(), 1);
}

TEST(SaveFaults, WithoutProc) {
  TemporaryFolder folder;
  const std::string result = in_child([&]() -> std::string {
    if (::chroot(folder.path().c_str()) != 0 || ::chdir("/") != 0) return "no chroot";
    save(1, "/a.pt");
    save(2, "/a.pt");
    return "saved";
  });
  if (result == "no chroot") GTEST_SKIP() << "the root of the file system cannot be changed here";
  EXPECT_EQ(result, "saved");
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_EQ(load(folder / "a.pt").as_int(), 2);
}

TEST(SaveFaults, WithoutMoreThreads) {
  const std::string result = in_child([]() -> std::string {
    if (!become_another_than_root()) return "no such user";
    rlimit limit{1, 1};
    ::setrlimit(RLIMIT_NPROC, &limit);
    const auto saved = save_to_buffer(floats(std::vector<float>(4 << 20, 2)));
    return elements<float>(load_from_buffer(saved).as_tensor()).back() == 2 ? "saved" : "wrong";
  });
  if (result == "no such user") GTEST_SKIP() << "no user without root's rights can be had here";
  EXPECT_EQ(result, "saved");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(SaveFaults, WithoutMemoryForACopy) {
  TemporaryFolder folder;
  const Tensor wide =
      Tensor::from_storage(allocate_storage(1, kCPU), DType::UInt8, {int64_t{1} << 50}, {int64_t{0}});
  EXPECT_THAT(error_of<OutOfMemoryError>([&] {
                save_safetensors({{"w", wide}}, folder / "a.safetensors");
              }),
              HasSubstr("the host has no memory for 1125899906842624 bytes"));
  EXPECT_EQ(folder.entries(), 0u);
}
#endif

TEST(SaveFaults, WhatAKilledProcessLeftIsRemoved) {
  TemporaryFolder folder;
  write_text(folder / ".tern-0123456789abcdef.tmp", "abandoned");
  write_text(folder / ".tern-notes", "not ours");
  io::AtomicFile alive(folder / "b.pt");  // a file that is being written stays
  alive.write("b");
  save(1, folder / "a.pt");
  alive.commit();
  EXPECT_FALSE(std::filesystem::exists(folder / ".tern-0123456789abcdef.tmp"));
  EXPECT_EQ(folder.entries(), 3u);
  EXPECT_EQ(read_text(folder / "b.pt"), "b");
}

/// A checkpoint that shows whether it is whole: every number is its generation.
Value generation(int64_t number, size_t count) {
  std::vector<float> values(count, static_cast<float>(number % 1000));
  StateDict tensors;
  for (int i = 0; i < 20; ++i) tensors.insert("t" + std::to_string(i), floats(values));
  return {{"generation", number}, {"model", tensors}};
}

int64_t whole_generation(const std::filesystem::path& path) {
  Value value = load(path);
  const int64_t number = value["generation"].as_int();
  for (const auto& [name, tensor] : value["model"].as_state_dict())
    for (float x : elements<float>(tensor)) EXPECT_EQ(x, static_cast<float>(number % 1000)) << name;
  return number;
}

constexpr const char* kChildPath = "TERN_TEST_SAVE_PATH";

/// What the tests below run in processes of their own: saves until it is killed, and tells on its standard
/// output, one byte each, when a checkpoint is there.
TEST(Child, DISABLED_SavesUntilItIsKilled) {
  const char* path = std::getenv(kChildPath);
  if (!path) GTEST_SKIP() << "for the tests of killed processes only";
  const int64_t first = std::atoll(std::getenv("TERN_TEST_SAVE_FIRST"));
  const int64_t count = std::atoll(std::getenv("TERN_TEST_SAVE_COUNT"));
  for (int64_t number = first; number < first + count; ++number) {
    save(generation(number, 20000), path);
    ASSERT_EQ(::write(100, "+", 1), 1);
  }
}

/// Starts this program again for the test above; gives its number and the end of a pipe.
std::pair<pid_t, int> start_saving(const std::filesystem::path& path, int64_t first, int64_t count) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, -1};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 100);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 1);
    ::setenv(kChildPath, path.c_str(), 1);
    ::setenv("TERN_TEST_SAVE_FIRST", std::to_string(first).c_str(), 1);
    ::setenv("TERN_TEST_SAVE_COUNT", std::to_string(count).c_str(), 1);
    ::execl("/proc/self/exe", "test_io", "--gtest_filter=Child.*", "--gtest_also_run_disabled_tests",
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  return {child, ends[0]};
}

TEST(SaveFaults, KilledAtAnyMoment) {
  const char* wanted = std::getenv("TERN_TEST_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 50;
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  std::mt19937 random(7);
  int64_t acknowledged = 0;
  size_t litter = 0;
  save(generation(0, 20000), path);
  for (int kill = 0; kill < kills; ++kill) {
    auto [child, messages] = start_saving(path, acknowledged + 1, 1'000'000);
    ASSERT_GT(child, 0);
    char byte = 0;
    ASSERT_EQ(::read(messages, &byte, 1), 1);  // it has begun
    ++acknowledged;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(messages, &byte, 1) == 1) ++acknowledged;
    ::close(messages);
    litter += folder.entries() - 1;
    const int64_t there = whole_generation(path);
    ASSERT_GE(there, acknowledged) << "a checkpoint is lost after kill " << kill;
    ASSERT_LE(there, acknowledged + 1);
    acknowledged = there;
    save(generation(there, 20000), path);
    ASSERT_EQ(folder.entries(), 1u) << "litter after kill " << kill;
  }
  RecordProperty("left_by_kills_and_removed", static_cast<int>(litter));
}

TEST(SaveFaults, TwoProcessesSaveToOnePath) {
  TemporaryFolder folder;
  const auto path = folder / "a.pt";
  save(generation(0, 20000), path);
  auto [first, first_messages] = start_saving(path, 1, 40);
  auto [second, second_messages] = start_saving(path, 1001, 40);
  int done = 0, read = 0;
  while (done < 2) {
    whole_generation(path);
    ++read;
    while (done < 2 && ::waitpid(done == 0 ? first : second, nullptr, WNOHANG) != 0) ++done;
  }
  EXPECT_GT(read, 1);
  EXPECT_THAT(whole_generation(path), AnyOf(40, 1040));
  EXPECT_EQ(folder.entries(), 1u);
  ::close(first_messages);
  ::close(second_messages);
}

}  // namespace
}  // namespace tern
