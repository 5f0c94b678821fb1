// The queue, the thread, and the failures of a simulated stream.
#include "tern/backends/sim/stream.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "tern/base/parallel.h"

namespace tern::sim {
namespace {

/// Tasks that may be queued before the host has to wait, as on a GPU.
constexpr uint32_t kMostQueued = 4096;

std::atomic<uint32_t> forks{0};

uint32_t count_forks() {
  [[maybe_unused]] static const int watching =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

struct SimStream::Record final : Task {
  Record(SimStream& stream, std::shared_ptr<SimEvent> event) : stream_(stream), event_(std::move(event)) {}
  /// A task that is skipped or dropped completes its event all the same.
  ~Record() override { event_->complete(stream_.failure_); }
  void run() override {}

 private:
  SimStream& stream_;
  std::shared_ptr<SimEvent> event_;
};

struct SimStream::Wait final : Task {
  Wait(SimStream& stream, std::shared_ptr<SimEvent> event, const Observation& observation)
      : stream_(stream), event_(std::move(event)), observation_(observation) {}
  void run() override {
    FailurePtr failure;
    observation_.run(/*least_seconds=*/0, [&] { failure = event_->wait(); });
    if (failure && !failure->delivered.load(std::memory_order_acquire)) stream_.failure_ = std::move(failure);
  }

 private:
  SimStream& stream_;
  std::shared_ptr<SimEvent> event_;
  Observation observation_;
};

SimStream::SimStream(int threads, std::optional<Jitter> jitter)
    : threads_(threads), jitter_(jitter), newest_(new Node), oldest_(newest_.load()), forks_(count_forks()) {
  sem_init(&available_, /*pshared=*/0, /*value=*/0);
  thread_ = std::thread([this] { work(); });
}

bool SimStream::has_thread() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }

SimStream::~SimStream() {
  if (!has_thread()) {  // and the queue may be halfway through a change
    thread_.detach();
    return;
  }
  stopping_.store(true, std::memory_order_release);
  sem_post(&available_);
  thread_.join();
  sem_destroy(&available_);
  while (oldest_) delete std::exchange(oldest_, oldest_->next.load(std::memory_order_acquire));
}

void SimStream::add(std::unique_ptr<Task> task, bool counts) {
  if (counts) outstanding_.fetch_add(1, std::memory_order_relaxed);
  auto* added = new Node{.task = std::move(task), .counts = counts};
  newest_.exchange(added, std::memory_order_acq_rel)->next.store(added, std::memory_order_release);
  sem_post(&available_);
}

void SimStream::push(std::unique_ptr<Task> task) {
  if (outstanding_.load(std::memory_order_relaxed) >= kMostQueued) [[unlikely]]
    drain();
  add(std::move(task), /*counts=*/true);
}

std::shared_ptr<SimEvent> SimStream::record() {
  auto event = std::make_shared<SimEvent>();
  // Who has waited for it must find the stream idle.
  add(std::make_unique<Record>(*this, event), /*counts=*/false);
  return event;
}

void SimStream::wait_for(std::shared_ptr<SimEvent> event, const Observation& observation) {
  // What is done without a failure that must travel on needs no task: the host's order is enough.
  if (event->reached() && !event->wait()) return;
  push(std::make_unique<Wait>(*this, std::move(event), observation));
}

/// A random delay: what order work on several streams happens to run in is up to the seed.
void SimStream::disturb() {
  const auto words = philox(jitter_->seed, disturbances_++);
  if (words[0] % 4 == 0) std::this_thread::yield();
  if (words[0] % 4 != 1) return;
  const double part = static_cast<double>(words[1]) * 0x1p-32;
  std::this_thread::sleep_for(std::chrono::duration<double>(jitter_->longest_delay * part));
}

void SimStream::work() {
  set_thread_local_num_threads(threads_);
  while (true) {
    while (sem_wait(&available_) != 0) {
    }
    if (stopping_.load(std::memory_order_acquire)) return;
    // A producer may be between the two steps of add(): its node comes in a moment.
    Node* next = nullptr;
    while ((next = oldest_->next.load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    delete std::exchange(oldest_, next);
    std::unique_ptr<Task> task = std::move(next->task);
    if (jitter_) disturb();
    if (failure_ && failure_->delivered.load(std::memory_order_acquire)) failure_ = nullptr;
    if (!failure_) try {
        task->run();
      } catch (...) {
        failure_ = std::make_shared<Failure>();
        failure_->error = std::current_exception();
      }
    task = nullptr;
    if (next->counts) outstanding_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace tern::sim
