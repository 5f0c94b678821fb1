// Jobs become units of about the same work: a piece of a large run, or a group of small runs that lie close
// together and are read at once.
#include "tern/io/bulk_read.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/io/byte_order.h"
#include "tern/io/checksum.h"
#include "tern/io/fresh_pages.h"

namespace tern::io {

namespace {

/// What is read and then summed at once: it stays in the processor's cache.
constexpr size_t kBlockBytes = size_t{256} << 10;
/// What gets its pages at once; a multiple of the above.
constexpr size_t kPagesBytes = size_t{2} << 20;
/// Copies to a GPU are of this size.
constexpr size_t kStagingBytes = size_t{2} << 20;
/// A large run is shared by threads in pieces; a multiple of both.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
/// Runs up to this size are read in groups, ...
constexpr uint64_t kSmallRun = uint64_t{64} << 10;
/// ... of at most this length with what lies between them, ...
constexpr uint64_t kGroupBytes = uint64_t{512} << 10;
/// ... if no more than this does.
constexpr uint64_t kGroupGap = 4096;
constexpr int64_t kMaxThreads = 16;

/// Jobs [first, last) that lie in the bytes [begin, end) of the source, or a piece of job `first`.
struct Unit {
  size_t first;
  size_t last;
  uint64_t begin;
  uint64_t end;
  bool group;
  uint32_t crc = 0;
};

std::vector<Unit> units_of(std::span<const ReadJob> jobs) {
  std::vector<Unit> units;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const ReadJob& job = jobs[i];
    const uint64_t end = job.offset + job.nbytes;
    if (job.nbytes > kSmallRun) {
      for (uint64_t at = job.offset; at < end; at += kPieceBytes)
        units.push_back({i, i + 1, at, std::min(at + kPieceBytes, end), false});
      continue;
    }
    Unit* open = units.empty() || !units.back().group ? nullptr : &units.back();
    const bool joins = open && open->last == i && job.offset >= open->end &&
                       job.offset - open->end <= kGroupGap && end - open->begin <= kGroupBytes;
    if (joins) {
      open->last = i + 1;
      open->end = end;
    } else {
      units.push_back({i, i + 1, job.offset, end, true});
    }
  }
  return units;
}

class BulkReader {
 public:
  BulkReader(const ByteSource& source, std::span<const ReadJob> jobs,
             const std::function<std::string(size_t)>& describe)
      : source_(source), jobs_(jobs), describe_(describe), units_(units_of(jobs)) {}

  void run() {
    std::atomic<size_t> next{0};
    const auto threads = std::min({int64_t{num_threads()}, static_cast<int64_t>(units_.size()), kMaxThreads});
    parallel_for(threads, 1, [&](int64_t, int64_t) {
      std::vector<std::byte> buffer;
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < units_.size();) {
        Unit& unit = units_[i];
        source_.will_read(unit.begin, unit.end - unit.begin);
        if (unit.group)
          read_group(unit, buffer);
        else
          read_piece(unit, buffer);
      }
    });
    check_pieces();
  }

 private:
  /// Small runs: one read, then each is copied to its place.
  void read_group(const Unit& unit, std::vector<std::byte>& buffer) {
    if (unit.begin == unit.end) return;
    buffer.resize(std::max<size_t>(buffer.size(), unit.end - unit.begin));
    source_.read_at(unit.begin, std::span(buffer).first(unit.end - unit.begin));
    for (size_t i = unit.first; i < unit.last; ++i) {
      const ReadJob& job = jobs_[i];
      std::span<std::byte> bytes = std::span(buffer).subspan(job.offset - unit.begin, job.nbytes);
      if (job.crc) check_crc(i, crc32(0, bytes));
      bytes = bytes.first(std::min<size_t>(bytes.size(), job.storage->nbytes()));
      if (bytes.empty()) continue;
      to_memory_form(bytes, job.dtype, job.swap);
      if (job.storage->device().is_cpu())
        std::memcpy(job.storage->data(), bytes.data(), bytes.size());
      else
        copy(*job.storage, 0, bytes);
    }
  }

  void read_piece(Unit& unit, std::vector<std::byte>& buffer) {
    const ReadJob& job = jobs_[unit.first];
    StorageImpl& storage = *job.storage;
    const bool on_host = storage.device().is_cpu();
    for (uint64_t at = unit.begin; at < unit.end;) {
      const uint64_t place = at - job.offset;
      const bool direct = on_host && place < storage.nbytes();
      uint64_t count = std::min<uint64_t>(unit.end - at, on_host ? kBlockBytes : kStagingBytes);
      // What the storage holds comes first, then what belongs to the checksum only.
      if (place < storage.nbytes())
        count = std::min<uint64_t>(count, storage.nbytes() - place);
      else if (!job.crc)
        return;
      if (!direct) buffer.resize(std::max<size_t>(buffer.size(), count));
      std::span<std::byte> bytes = direct ? std::span(static_cast<std::byte*>(storage.data()) + place, count)
                                          : std::span(buffer).first(count);
      if (direct && place % kPagesBytes == 0) provide_pages(storage, place);
      for (size_t done = 0; done < count; done += kBlockBytes) {
        std::span<std::byte> block = bytes.subspan(done, std::min<size_t>(kBlockBytes, count - done));
        source_.read_at(at + done, block);
        if (job.crc) unit.crc = crc32(unit.crc, block);
      }
      if (place < storage.nbytes()) {
        to_memory_form(bytes, job.dtype, job.swap);
        if (!direct) copy(storage, place, bytes);
      }
      at += count;
    }
  }

  void provide_pages(StorageImpl& storage, size_t place) {
    const std::span whole(static_cast<std::byte*>(storage.data()), storage.nbytes());
    fresh_pages_.provide(whole.subspan(place, std::min(kPagesBytes, whole.size() - place)), whole);
  }

  void copy(StorageImpl& storage, size_t offset, std::span<const std::byte> bytes) {
    std::lock_guard lock(copying_);
    copy_from_host(storage, offset, bytes.data(), bytes.size());
  }

  void check_pieces() const {
    for (size_t u = 0; u < units_.size();) {
      const size_t job = units_[u].first;
      if (units_[u].group || !jobs_[job].crc) {
        ++u;
        continue;
      }
      uint32_t crc = 0;
      for (; u < units_.size() && !units_[u].group && units_[u].first == job; ++u)
        crc = crc32_of_two(crc, units_[u].crc, units_[u].end - units_[u].begin);
      check_crc(job, crc);
    }
  }

  void check_crc(size_t job, uint32_t crc) const {
    TERN_CHECK(crc == *jobs_[job].crc, CheckpointError,
               "{} is damaged: its CRC is {:08x}, it should be {:08x}", describe_(job), crc, *jobs_[job].crc);
  }

  const ByteSource& source_;
  std::span<const ReadJob> jobs_;
  const std::function<std::string(size_t)>& describe_;
  std::vector<Unit> units_;
  std::mutex copying_;
  FreshPages fresh_pages_;
};

}  // namespace

void to_memory_form(std::span<std::byte> bytes, DType dtype, bool swap) {
  if (swap) swap_bytes(bytes.data(), bytes.size(), itemsize(dtype) / (is_complex(dtype) ? 2 : 1));
  if (dtype == DType::Bool)
    for (std::byte& byte : bytes) byte = byte == std::byte{0} ? byte : std::byte{1};
}

void fill_storages(const ByteSource& source, std::span<const ReadJob> jobs,
                   const std::function<std::string(size_t)>& describe) {
  BulkReader(source, jobs, describe).run();
}

}  // namespace tern::io
