// Files that appear whole or not at all, with faults put in at every step.
#include "tern/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "io_testing.h"
#include "tern/io/summary.h"

namespace tern::io {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The native file system, except that operation number `fail_at` fails.
class FaultySystem final : public FileSystem {
 public:
  explicit FaultySystem(int fail_at, bool unnamed = true) : fail_at_(fail_at), unnamed_(unnamed) {}

  std::unique_ptr<OutputFile> create_unnamed(const std::filesystem::path& folder) override {
    if (!unnamed_) return nullptr;
    step("creating");
    return wrap(native().create_unnamed(folder));
  }
  void name_file(OutputFile& file, const std::filesystem::path& path) override {
    step("naming");
    native().name_file(*static_cast<File&>(file).inner, path);
  }
  std::unique_ptr<OutputFile> create(const std::filesystem::path& path) override {
    step("creating");
    return wrap(native().create(path));
  }
  void prepare_to_replace(OutputFile& file, const std::filesystem::path& path) override {
    step("preparing");
    native().prepare_to_replace(*static_cast<File&>(file).inner, path);
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    step("renaming");
    native().rename(from, to);
  }
  void remove(const std::filesystem::path& path) override { native().remove(path); }
  void remove_abandoned(const std::filesystem::path&) noexcept override {}
  void sync_folder(const std::filesystem::path& folder) override {
    step("syncing the folder");
    native().sync_folder(folder);
  }
  bool failed() const { return steps_ > fail_at_; }
  const std::vector<std::string>& log() const { return log_; }

 private:
  struct File final : OutputFile {
    File(FaultySystem& system_, std::unique_ptr<OutputFile> inner_)
        : system(system_), inner(std::move(inner_)) {}
    void write(std::span<const std::byte> bytes) override {
      system.step("writing");
      inner->write(bytes);
    }
    void sync() override {
      system.step("syncing");
      inner->sync();
    }
    FaultySystem& system;
    std::unique_ptr<OutputFile> inner;
  };
  std::unique_ptr<OutputFile> wrap(std::unique_ptr<OutputFile> file) {
    return file ? std::make_unique<File>(*this, std::move(file)) : nullptr;
  }
  void step(const char* name) {
    log_.push_back(name);
    if (steps_++ == fail_at_) throw IoError(std::string(name) + " failed: No space left on device");
  }

  int fail_at_;
  bool unnamed_;
  int steps_ = 0;
  std::vector<std::string> log_;
};

TEST(AtomicFile, ReplacesInOneStep) {
  TemporaryFolder folder;
  auto path = folder / "a.bin";
  write_text(path, "old");
  AtomicFile file(path);
  file.write("new ");
  file.write(std::string(3 << 20, 'x'));
  file.write(" end");
  EXPECT_EQ(read_text(path), "old");
  file.commit();
  EXPECT_EQ(read_text(path), "new " + std::string(3 << 20, 'x') + " end");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, WithoutCommitNothingHappens) {
  TemporaryFolder folder;
  { AtomicFile(folder / "a.bin").write("text"); }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, EveryFaultLeavesTheOldFileAndNoLitter) {
  for (bool unnamed : {true, false}) {
    bool failed = true;
    for (int fail_at = 0; failed; ++fail_at) {
      TemporaryFolder folder;
      auto path = folder / "a.bin";
      write_text(path, "old");
      FaultySystem system(fail_at, unnamed);
      auto save = [&] {
        AtomicFile file(path, system);
        file.write(std::string(2 << 20, 'x'));
        file.write("end");
        file.commit();
      };
      bool folder_sync_failed = false;
      try {
        save();
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), HasSubstr(path.string()));
        EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
        folder_sync_failed = system.log().back() == "syncing the folder";
      }
      failed = system.failed();
      bool replaced = !failed || folder_sync_failed;
      EXPECT_EQ(read_text(path), replaced ? std::string(2 << 20, 'x') + "end" : "old") << fail_at;
      EXPECT_EQ(folder.entries(), 1u) << "after a fault in step " << fail_at;
      ASSERT_LT(fail_at, 20);
    }
  }
}

TEST(AtomicFile, OrderOfOperations) {
  TemporaryFolder folder;
  FaultySystem system(1000);
  AtomicFile file(folder / "a.bin", system);
  file.write("text");
  file.commit();
  EXPECT_EQ(system.log(), (std::vector<std::string>{"creating", "preparing", "writing", "syncing", "naming",
                                                    "renaming", "syncing the folder"}));
}

TEST(AtomicFile, ErrorsNamePathAndCause) {
  TemporaryFolder folder;
  EXPECT_EQ(error_of<IoError>([&] { AtomicFile file(folder / "missing/a.bin"); }),
            "saving '" + (folder / "missing/a.bin").string() + "': the folder '" +
                (folder / "missing").string() + "' does not exist (what was there before is unchanged)");
  EXPECT_THAT(error_of<IoError>([&] { AtomicFile file(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_of<IoError>([&] { AtomicFile file("/dev/null"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of<IoError>([&] { AtomicFile file(""); }), HasSubstr("names no file"));
  EXPECT_THAT(error_of<IoError>([&] { AtomicFile file(folder / std::string(300, 'n')); }),
              HasSubstr("File name too long"));
}

TEST(AtomicFile, APipeBehindALinkIsNoFile) {
  TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), folder / "out.bin");
  EXPECT_THAT(error_of<IoError>([&] { AtomicFile file(folder / "out.bin"); }),
              HasSubstr("out.bin': it is not a regular file"));
  for (int end : ends) ::close(end);
}

TEST(AtomicFile, KeepsPermissionsAndFollowsLinks) {
  TemporaryFolder folder;
  write_text(folder / "real.bin", "old");
  ASSERT_EQ(::chmod((folder / "real.bin").c_str(), 0640), 0);
  std::filesystem::create_symlink("real.bin", folder / "link.bin");
  std::filesystem::create_symlink("absent.bin", folder / "dangling.bin");
  AtomicFile file(folder / "link.bin");
  file.write("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.bin"));
  EXPECT_EQ(read_text(folder / "real.bin"), "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "real.bin").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
  AtomicFile other(folder / "dangling.bin");
  other.write("x");
  other.commit();
  EXPECT_EQ(read_text(folder / "absent.bin"), "x");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling.bin"));
}

TEST(AtomicFile, KeepsTheOwnerButNotTheBitsOfPrograms) {
  TemporaryFolder folder;
  const auto path = folder / "a.bin";
  write_text(path, "old");
  const bool given = ::chown(path.c_str(), 65534, 65533) == 0;  // only root may
  ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
  write_atomically(path, /*sync=*/true, [](ByteSink& sink) { sink.write("new"); });
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0755u);
  EXPECT_EQ(status.st_uid, given ? 65534u : ::getuid());
  EXPECT_EQ(status.st_gid, given ? 65533u : ::getgid());
}

TEST(AtomicFile, TemporaryFilesOfOthersStay) {
  TemporaryFolder folder;
  const std::string ours = ".tern-0123456789abcdef.tmp";
  const std::vector<std::string> others = {".tern-notes.tmp", ".tern-0123456789abcde.tmp",
                                           ".tern-0123456789abcdef0.tmp", ".tern-0123456789ABCDEF.tmp",
                                           ".tern-.tmp"};
  write_text(folder / ours, "");
  for (const std::string& name : others) write_text(folder / name, "");
  write_atomically(folder / "a.bin", /*sync=*/false, [](ByteSink&) {});
  EXPECT_FALSE(std::filesystem::exists(folder / ours));
  for (const std::string& name : others) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
}

TEST(AtomicFile, LinksAreMadeToFilesNotToSymbolicLinks) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "out");
  write_text(folder / "real.bin", "first");
  std::filesystem::create_symlink("real.bin", folder / "last.bin");
  std::filesystem::create_symlink("../latest.bin", folder / "out/latest.bin");
  link_atomically(folder / "last.bin", folder / "best.bin");
  link_atomically(folder / "last.bin", folder / "out/latest.bin");
  write_atomically(folder / "last.bin", /*sync=*/true, [](ByteSink& sink) { sink.write("second"); });
  EXPECT_EQ(read_text(folder / "last.bin"), "second");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "best.bin"));
  EXPECT_EQ(read_text(folder / "best.bin"), "first");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "out/latest.bin"));
  EXPECT_EQ(read_text(folder / "latest.bin"), "first");
}

TEST(AtomicFile, PathsWithANulAreRefused) {
  TemporaryFolder folder;
  write_text(folder / "a", "old");
  const std::filesystem::path path = folder / std::string("a\0b", 3);
  const std::function<void()> uses[] = {[&] { save(1, path); }, [&] { load(path); }, [&] { open_file(path); },
                                        [&] { AtomicFile file(path); },
                                        [&] { link_atomically(folder / "a", path); }};
  for (const auto& use : uses)
    EXPECT_EQ(error_of<IoError>(use), "the path '" + (folder / "a").string() + "...' has a NUL byte");
  EXPECT_EQ(read_text(folder / "a"), "old");
}

TEST(ByteSource, ReadsRangesAndRefusesMore) {
  TemporaryFolder folder;
  write_text(folder / "a.bin", "0123456789");
  auto file = open_file(folder / "a.bin");
  auto text = [](const std::vector<std::byte>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(file->read(3, 4)), "3456");
  EXPECT_EQ(text(part_of(file, 2, 5)->read(1, 3)), "345");
  EXPECT_EQ(text(view_memory(bytes_of("abc"))->read(1, 2)), "bc");
  EXPECT_THROW(file->read(8, 3), CheckpointError);
  EXPECT_THROW(file->read(UINT64_MAX, 2), CheckpointError);
  EXPECT_THROW(part_of(file, 2, 5)->read(0, 6), CheckpointError);
  EXPECT_THROW(part_of(file, 8, UINT64_MAX), CheckpointError);
  EXPECT_EQ(text(file->read(10, 0)), "");
}

TEST(ByteSource, OpeningErrorsNameTheCause) {
  TemporaryFolder folder;
  EXPECT_EQ(error_of<IoError>([&] { open_file(folder / "absent"); }),
            "cannot open '" + (folder / "absent").string() + "': No such file or directory");
  EXPECT_THAT(error_of<IoError>([&] { open_file(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_of<IoError>([&] { open_file("/dev/null"); }), HasSubstr("a device or pipe"));
  // Once, also where the path is the context.
  const std::string path = "'" + (folder / "a.pt").string() + "'";
  const std::string absent = "cannot open " + path + ": No such file or directory";
  EXPECT_EQ(error_of<IoError>([&] { load(folder / "a.pt"); }), absent);
  EXPECT_EQ(error_of<IoError>([&] { summarize_file(folder / "a.pt"); }), absent);
  write_text(folder / "a.pt", "words\n");
  EXPECT_THAT(error_of<CheckpointError>([&] { load(folder / "a.pt"); }),
              StartsWith("loading " + path + ": "));
  EXPECT_THAT(error_of<CheckpointError>([&] { summarize_file(folder / "a.pt"); }), StartsWith(path + ": "));
}

TEST(ByteSource, DescriptorsAreReadInPlaceOrKept) {
  TemporaryFolder folder;
  write_text(folder / "a", "0123456789");
  auto all = [](const ByteSource& source) {
    const std::vector<std::byte> bytes = source.read(0, source.size());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const int file = ::open((folder / "a").c_str(), O_RDONLY | O_CLOEXEC);
  const auto in_place = open_descriptor(file, "the input");
  EXPECT_EQ(in_place->name(), "the input");
  write_text(folder / "a", "abcdefghij");
  EXPECT_EQ(all(*in_place), "abcdefghij");
  ::lseek(file, 7, SEEK_SET);
  const auto rest = open_descriptor(file, "the input");
  ::close(file);
  EXPECT_EQ(all(*in_place), "abcdefghij") << "it has a descriptor of its own";
  write_text(folder / "a", "0123456789");
  EXPECT_EQ(all(*rest), "hij");

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  const auto piped = open_descriptor(ends[0], "the input");
  ::close(ends[0]);
  EXPECT_EQ(all(*piped), "piped");
  EXPECT_NE(piped->map(), nullptr);
  EXPECT_EQ(error_of<IoError>([&] { open_descriptor(-1, "the input"); }),
            "inspecting the input failed: Bad file descriptor");
  const int at = ::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(error_of<IoError>([&] { open_descriptor(at, "the input"); }),
            "reading the input failed: Is a directory");
  ::close(at);
}

}  // namespace
}  // namespace tern::io
