// Mappings, and what is printed when the file behind one is cut short.
#include "tern/io/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "tern/base/check.h"
#include "tern/core/memory.h"

namespace tern::io {

/// What the handler of SIGBUS may read at any moment: records are used again, but never freed.
struct MappedFile::Record {
  std::atomic<uintptr_t> begin{0};  ///< 0: free
  std::atomic<uintptr_t> end{0};
  char name[512] = {};
  Record* next = nullptr;
};

namespace {

constexpr std::string_view kAdvice =
    " became shorter, or could not be read, while tensors loaded from it with mmap = true were in use: load "
    "it "
    "without mmap, and replace files by renaming, as save() does\n";

std::mutex records_mutex;
std::atomic<const void*> first_record{nullptr};
/// Finds the record of an address; set with the handler, since the type is private.
void (*print_name_of)(uintptr_t address) = nullptr;
struct sigaction earlier_action;

void print(std::string_view text) {
  ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

/// Says which file it was, and lets the signal take its course.
void on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  print_name_of(reinterpret_cast<uintptr_t>(info->si_addr));
  ::sigaction(SIGBUS, &earlier_action, nullptr);
  errno = error;
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (::sigaction(SIGBUS, nullptr, &earlier_action) != 0 || (earlier_action.sa_flags & SA_SIGINFO) ||
        earlier_action.sa_handler != SIG_DFL)
      return;
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

}  // namespace

MappedFile::Record& MappedFile::take_record() {
  const auto* first = static_cast<const Record*>(first_record.load());
  for (auto* record = const_cast<Record*>(first); record; record = record->next)
    if (record->begin.load() == 0) return *record;
  auto* record = new Record;
  record->next = const_cast<Record*>(first);
  first_record.store(record);
  return *record;
}

MappedFile::MappedFile(int descriptor, uint64_t size, std::string name) {
  if (size == 0) return;
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, /*offset=*/0);
  TERN_CHECK(data != MAP_FAILED, IoError, "cannot map {} into memory: {}", name,
             std::generic_category().message(errno));
  bytes_ = {static_cast<std::byte*>(data), size};
  std::lock_guard lock(records_mutex);
  record_ = &take_record();
  const size_t length = std::min(name.size(), sizeof(record_->name) - 1);
  std::memcpy(record_->name, name.data(), length);
  record_->name[length] = '\0';
  record_->end.store(reinterpret_cast<uintptr_t>(data) + size);
  record_->begin.store(reinterpret_cast<uintptr_t>(data));
  print_name_of = [](uintptr_t address) {
    for (auto* record = static_cast<const Record*>(first_record.load()); record; record = record->next) {
      const uintptr_t begin = record->begin.load();
      if (begin == 0 || address < begin || address >= record->end.load()) continue;
      print("tern: ");
      print(record->name);
      print(kAdvice);
    }
  };
  install_handler();
}

MappedFile::~MappedFile() {
  if (record_) record_->begin.store(0);
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void MappedFile::drop_pages(const std::byte* begin, size_t nbytes) noexcept {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  for (auto* record = static_cast<const Record*>(first_record.load()); record; record = record->next) {
    const uintptr_t mapped = record->begin.load(), mapped_end = record->end.load();
    if (mapped == 0 || address < mapped || address >= mapped_end || nbytes > mapped_end - address) continue;
    const uintptr_t first = (address + page - 1) / page * page, last = (address + nbytes) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    return;
  }
}

std::shared_ptr<MappedFile> map_for_tensors(const ByteSource& source) {
  auto mapping = source.map();
  TERN_CHECK(mapping, TypeError,
             "f must be a file path in order to use the mmap argument: {} is in memory already, or only a "
             "part of a file (load it without mmap)",
             source.name());
  return mapping;
}

void fail_not_mappable() {
  TERN_THROW(CheckpointError,
             "mmap can only be used with files saved with `torch.save(path, "
             "_use_new_zipfile_serialization=True)`, please torch.save your checkpoint with this option in "
             "order to use mmap. (In Tern: load it once without mmap and save() it, or as safetensors.)");
}

Storage mapped_storage(const std::shared_ptr<MappedFile>& file, uint64_t offset, size_t nbytes, DType dtype,
                       size_t alignment) {
  if (dtype == DType::Bool || offset % std::max(alignment, itemsize(dtype)) != 0) return {};
  TERN_CHECK(offset <= file->bytes().size() && nbytes <= file->bytes().size() - offset, CheckpointError,
             "bytes {} to {} are not inside the mapped file", offset, offset + nbytes);
  return storage_from_blob(file->bytes().data() + offset, nbytes, [file] {});
}

}  // namespace tern::io
