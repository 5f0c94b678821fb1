// The copy of a state, the thread that writes it, and the files that stay.
#include "tern/train/async_saver.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "tern/base/check.h"
#include "tern/base/parallel.h"
#include "tern/core/memory.h"
#include "tern/device/backend.h"
#include "tern/device/registry.h"
#include "tern/io/file.h"
#include "tern/io/safetensors.h"
#include "tern/io/torch_writer.h"
#include "tern/io/value_nodes.h"

namespace tern::train {

namespace {

namespace fs = std::filesystem;

/// Copies of storages, kept for as long as the storages are in the states that are saved.
class Snapshots {
 public:
  /// A tree that shares nothing with `value` that training changes.
  Value copy(const Value& value) {
    copied_.clear();
    for (auto& [storage, known] : known_) known.seen = false;
    Value result = copy_value(value);
    std::erase_if(known_, [](const auto& entry) { return !entry.second.seen; });
    locations_.clear();
    for (const auto& [storage, known] : known_)
      if (!storage->device().is_cpu()) locations_.emplace(known.copy.get(), storage->device().str());
    return result;
  }
  const std::unordered_map<const StorageImpl*, std::string>& locations() const { return locations_; }
  void forget() { known_.clear(); }

 private:
  struct Known {
    Storage original;  ///< keeps the address from being used by another
    Storage copy;
    uint32_t version = 0;
    bool seen = false;
  };

  Storage copy_storage(const Storage& storage) {
    const bool on_cpu = storage->device().is_cpu();
    const uint32_t version = storage->version();
    const size_t nbytes = storage->nbytes();
    Known& known = known_[storage.get()];
    if (known.seen) return known.copy;
    // The CPU's memory is written to through pointers as well, which no version counts.
    if (known.original && !on_cpu && known.version == version) {
      known.seen = true;
      return known.copy;
    }
    // Until the copy is made, and if that fails, nothing is known.
    Storage copy = std::exchange(known, {}).copy;
    if (!copy || copy->nbytes() != nbytes)
      copy = on_cpu ? allocate_storage(nbytes, kCPU)
                    : backend_of(storage->device().type).allocate_pinned(nbytes);
    if (on_cpu)
      parallel_for(static_cast<int64_t>(nbytes), int64_t{1} << 20, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<std::byte*>(copy->data()) + begin,
                    static_cast<const std::byte*>(storage->data()) + begin, static_cast<size_t>(end - begin));
      });
    else
      copy_to_host(copy->data(), *storage, 0, nbytes);
    known = {storage, std::move(copy), version, true};
    return known.copy;
  }

  Value copy_value(const Value& value) {
    if (const Tensor* tensor = value.plain<Tensor>()) {
      if (!tensor->defined()) return value;
      auto found = copied_.find(value.identity());
      if (found != copied_.end()) return found->second;
      const TensorImpl& impl = tensor->impl();
      Tensor copy =
          Tensor::from_storage(copy_storage(impl.storage), impl.dtype, impl.shape, impl.strides, impl.offset);
      if (tensor->requires_grad()) copy.requires_grad_(true);
      return remember(value, copy);
    }
    const void* identity = value.identity();
    if (!identity) return value;
    auto found = copied_.find(identity);
    if (found != copied_.end()) return found->second;
    switch (value.kind()) {
      case ValueKind::RawStorage: {
        StorageValue held = value.as_storage();
        if (held.storage) held.storage = copy_storage(held.storage);
        return remember(value, held);
      }
      case ValueKind::List: {
        Value list = remember(value, Value::list());
        for (const Value& item : value.as_list()) list.as_list().push_back(copy_value(item));
        return list;
      }
      case ValueKind::Tuple: {
        std::vector<Value> items;
        for (const Value& item : value.as_tuple()) items.push_back(copy_value(item));
        return remember(value, Value::tuple(std::move(items)));
      }
      case ValueKind::Dict: {
        const ValueDict& from = value.as_dict();
        Value dict = remember(value, from.is_ordered_dict() ? Value::ordered_dict() : Value::dict());
        dict.as_dict().reserve(from.size());
        for (const auto& [key, entry] : from) dict.as_dict().set(key, copy_value(entry));
        dict.as_dict().set_attributes(copy_value(from.attributes()));
        return dict;
      }
      case ValueKind::Object: {
        ValueObject object = value.as_object();
        object.args = copy_value(object.args);
        object.kwargs = copy_value(object.kwargs);
        object.state = copy_value(object.state);
        for (Value& item : object.items) item = copy_value(item);
        for (auto& entry : object.entries) entry.value = copy_value(entry.value);
        return remember(value, std::move(object));
      }
      default:
        return value;  // texts, sets of plain values, names: nothing in them changes
    }
  }

  Value remember(const Value& original, Value copy) {
    copied_.emplace(original.identity(), copy);
    return copy;
  }

  std::unordered_map<const StorageImpl*, Known> known_;
  std::unordered_map<const void*, Value> copied_;  ///< of this copy
  std::unordered_map<const StorageImpl*, std::string> locations_;
};

/// Counts what goes through it.
class CountingSink final : public io::ByteSink {
 public:
  CountingSink(io::ByteSink& sink, uint64_t total, const std::function<void(uint64_t, uint64_t)>& progress)
      : sink_(sink), total_(total), progress_(progress) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), size_t{16} << 20));
      sink_.write(piece);
      bytes = bytes.subspan(piece.size());
      written_ += piece.size();
      if (!progress_ || written_ >= total_ || written_ - reported_ < total_ / 100) continue;
      reported_ = written_;
      progress_(written_, total_);
    }
  }
  uint64_t written() const { return written_; }

 private:
  io::ByteSink& sink_;
  uint64_t total_;
  uint64_t written_ = 0;
  uint64_t reported_ = 0;
  const std::function<void(uint64_t, uint64_t)>& progress_;
};

/// The bytes of the storages in a tree, each once.
uint64_t storage_bytes(const io::TorchWriteOptions& options, const Value& value) {
  uint64_t total = 0;
  for (const io::WrittenStorage& part : io::make_torch_tree(value, options).storages) total += part.nbytes;
  return total;
}

}  // namespace

struct AsyncSaver::State {
  explicit State(AsyncSaverOptions options_) : options(std::move(options_)) {}

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return job || stopping; });
      if (!job) return;
      Job current = std::move(*job);
      lock.unlock();
      std::exception_ptr failure;
      try {
        write(current);
      } catch (...) {
        failure = std::current_exception();
      }
      current.value = Value();  // freed here, not in the training thread
      lock.lock();
      if (failure)
        error = failure;
      else
        written(current);
      job.reset();
      changed.notify_all();
    }
  }

  struct Job {
    Value value;
    fs::path path;
    std::optional<double> metric;
  };

  void write(const Job& current) {
    const io::TorchWriteOptions written{.compact = options.save.compact, .locations = &snapshots.locations()};
    const uint64_t total = options.progress ? storage_bytes(written, current.value) : 0;
    uint64_t bytes = 0;
    io::write_atomically(current.path, options.save.sync, [&](io::ByteSink& file) {
      CountingSink sink(file, total, options.progress);
      if (options.save.format == SaveFormat::Legacy)
        io::write_torch_stream(current.value, sink, written);
      else
        io::write_torch_zip(current.value, sink, io::archive_name_for(current.path), written);
      bytes = sink.written();
    });
    if (options.progress) options.progress(bytes, bytes);
    if (!options.latest.empty()) io::link_atomically(current.path, options.latest, options.save.sync);
    if (!options.best_copy.empty() && is_better(current.path, current.metric))
      io::link_atomically(current.path, options.best_copy, options.save.sync);
  }

  /// Only the thread that has the job changes what is read here.
  bool is_better(const fs::path& path, std::optional<double> metric) const {
    if (!metric || std::isnan(*metric)) return false;
    if (!best || best->first == path) return true;
    return options.best == Best::Lowest ? *metric < best->second : *metric > best->second;
  }

  /// The lock is held.
  void add_file(const fs::path& path, std::optional<double> metric) {
    const bool better = is_better(path, metric);
    std::erase(files, path);
    files.push_back(path);
    if (best && best->first == path) best.reset();  // its content is another now
    if (better) best = {path, *metric};
  }

  /// Keeps the list of files. The lock is held.
  void written(const Job& current) {
    add_file(current.path, current.metric);
    if (options.keep_last <= 0) return;
    auto is_best = [&](const fs::path& path) { return best && best->first == path; };
    size_t excess = files.size() > static_cast<size_t>(options.keep_last)
                        ? files.size() - static_cast<size_t>(options.keep_last)
                        : 0;
    std::erase_if(files, [&](const fs::path& path) {
      if (excess == 0) return false;
      --excess;
      if (is_best(path)) return false;
      std::error_code failed;
      fs::remove(path, failed);
      if (failed && !error)
        error = std::make_exception_ptr(IoError(
            fmt::format("removing the old checkpoint '{}' failed: {}", path.string(), failed.message())));
      return true;
    });
  }

  void wait_until_idle(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [&] { return !job; });
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }

  const AsyncSaverOptions options;
  Snapshots
      snapshots;  ///< of the training thread while there is no job, of the writing thread while there is one
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Job> job;
  bool stopping = false;
  std::exception_ptr error;
  std::vector<fs::path> files;  ///< the oldest first
  std::optional<std::pair<fs::path, double>> best;
  std::thread thread;
};

AsyncSaver::AsyncSaver(AsyncSaverOptions options) {
  TERN_CHECK(options.keep_last >= 0, ValueError, "AsyncSaver: keep_last is {}, but counts files",
             options.keep_last);
  io::check_no_safetensors_name(options.latest);
  io::check_no_safetensors_name(options.best_copy);
  state_ = std::make_unique<State>(std::move(options));
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

AsyncSaver::~AsyncSaver() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  if (!state_->error) return;
  try {
    std::rethrow_exception(state_->error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "AsyncSaver: a checkpoint is not there: %s\n", error.what());
  } catch (...) {  // what a callback threw
    std::fprintf(stderr, "AsyncSaver: a checkpoint is not there: an unknown error\n");
  }
}

void AsyncSaver::save(const Value& state, const std::filesystem::path& path, std::optional<double> metric) {
  io::check_no_safetensors_name(path);
  {
    std::unique_lock lock(state_->mutex);
    state_->wait_until_idle(lock);
  }
  Value copy = state_->snapshots.copy(state);
  std::lock_guard lock(state_->mutex);
  state_->job = State::Job{std::move(copy), path, metric};
  state_->changed.notify_all();
}

void AsyncSaver::adopt(const std::filesystem::path& path, std::optional<double> metric) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->job; });
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) state_->add_file(path, metric);
}

void AsyncSaver::wait() {
  std::unique_lock lock(state_->mutex);
  state_->wait_until_idle(lock);
}

bool AsyncSaver::busy() const {
  std::lock_guard lock(state_->mutex);
  return state_->job.has_value();
}

std::filesystem::path AsyncSaver::best_path() const {
  std::lock_guard lock(state_->mutex);
  return state_->best ? state_->best->first : fs::path();
}

std::optional<double> AsyncSaver::best_metric() const {
  std::lock_guard lock(state_->mutex);
  return state_->best ? std::optional(state_->best->second) : std::nullopt;
}

void AsyncSaver::forget() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->job; });
  state_->snapshots.forget();
}

}  // namespace tern::train
