// NCCL between threads that take the parts of processes, each with a GPU of the emulator: what is sent lies
// in one memory, and streams wait for each other until it may be read, and until it was.
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/queue.h"

using namespace emulator;

namespace {

struct Part {
  bool sends;
  char* data;
  size_t nbytes;
  int peer;
};

/// One call, or group of calls, of all processes.
struct Round {
  explicit Round(size_t size) : parts(size) {
    for (size_t r = 0; r < size; ++r) {
      arrived.push_back(std::make_shared<Mark>());
      done.push_back(std::make_shared<Mark>());
    }
  }
  size_t came = 0;
  std::vector<std::vector<Part>> parts;  ///< of each process
  std::vector<std::shared_ptr<Mark>> arrived, done;
};

struct Meeting {
  size_t size = 0, joined = 0;
  bool broken = false;
  std::deque<Round> rounds;
};

std::map<std::string, std::shared_ptr<Meeting>>& meetings() {
  static auto* only = new std::map<std::string, std::shared_ptr<Meeting>>;
  return *only;
}

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "NCCL emulator: %s\n", why);
  std::abort();
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Meeting> meeting;
  size_t rank, next = 0;
};

namespace {

struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Part> parts;
};
thread_local Group group;

/// What rank `r` receives, from where the others said that they send it, in the order of the calls.
void receive(const Meeting& meeting, const Round& round, size_t r) {
  if (meeting.broken) return;
  std::vector<size_t> taken(meeting.size, 0);
  for (const Part& part : round.parts[r]) {
    if (part.sends) continue;
    const auto& theirs = round.parts[static_cast<size_t>(part.peer)];
    const auto sent_here = [&](const Part& other) {
      return other.sends && other.peer == static_cast<int>(r);
    };
    size_t& skipped = taken[static_cast<size_t>(part.peer)];
    auto found = std::find_if(theirs.begin(), theirs.end(), sent_here);
    for (size_t i = 0; i < skipped && found != theirs.end(); ++i)
      found = std::find_if(found + 1, theirs.end(), sent_here);
    if (found == theirs.end() || found->nbytes != part.nbytes) die("a message that nobody sends");
    ++skipped;
    std::memmove(part.data, found->data, part.nbytes);
  }
}

ncclResult_t queue_round() {
  const std::lock_guard lock(big_lock());
  const std::shared_ptr<Meeting> meeting = group.comm->meeting;
  if (meeting->joined < meeting->size || meeting->broken) return ncclInvalidUsage;
  const size_t rank = group.comm->rank, number = group.comm->next++;
  if (number == meeting->rounds.size()) meeting->rounds.emplace_back(meeting->size);
  Round& round = meeting->rounds[number];
  round.parts[rank] = std::move(group.parts);
  if (++round.came == 1) ++awaited_calls();
  if (round.came == meeting->size) --awaited_calls();
  const cudaStream_t stream = group.stream;
  const auto pass = [&](const std::vector<std::shared_ptr<Mark>>& marks, std::function<void()> before) {
    enqueue(stream, [before = std::move(before), mark = marks[rank]] {
      before();
      mark->reached = true;
    });
    for (const auto& mark : marks) wait_for(stream, mark);
  };
  pass(round.arrived, [] {});
  pass(round.done, [meeting, &round, rank] { receive(*meeting, round, rank); });
  return ncclSuccess;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, std::vector<Part> parts) {
  if (group.comm != nullptr && (group.comm != comm || group.stream != stream)) die("one group, one stream");
  group.comm = comm;
  group.stream = stream;
  group.parts.insert(group.parts.end(), parts.begin(), parts.end());
  return group.depth > 0 ? ncclSuccess : ncclGroupEnd();
}

char* bytes(const void* data) { return static_cast<char*>(const_cast<void*>(data)); }

int size_of(ncclComm_t comm) { return static_cast<int>(comm->meeting->size); }

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(big_lock());
  static int number = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "emulated %d", ++number);
  meetings()[id->internal] = std::make_shared<Meeting>();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(big_lock());
  if (config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  const auto found = meetings().find(id.internal);
  if (found == meetings().end()) return ncclInvalidArgument;
  found->second->size = static_cast<size_t>(size);
  *made = new ncclComm{found->second, static_cast<size_t>(rank)};
  if (++found->second->joined == found->second->size) meetings().erase(found);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(big_lock());
  const Meeting& meeting = *comm->meeting;
  *state = meeting.broken ? ncclRemoteError : meeting.joined < meeting.size ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

/// What waits for others goes on, and receives nothing.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(big_lock());
  Meeting& meeting = *comm->meeting;
  for (Round& round : meeting.rounds) {
    if (!meeting.broken && round.came < meeting.size) --awaited_calls();
    for (const auto* marks : {&round.arrived, &round.done})
      for (const auto& mark : *marks) mark->reached = true;
  }
  meeting.broken = true;
  delete comm;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  group.depth = std::max(group.depth - 1, 0);
  if (group.depth > 0 || group.comm == nullptr) return ncclSuccess;
  const ncclResult_t result = queue_round();
  group = {};
  return result;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {{true, bytes(data), count, peer}});
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {{false, bytes(data), count, peer}});
}

ncclResult_t ncclAllGather(const void* sent, void* received, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  std::vector<Part> parts;
  for (int r = 0; r < size_of(comm); ++r) {
    parts.push_back({true, bytes(sent), count, r});
    parts.push_back({false, bytes(received) + static_cast<size_t>(r) * count, count, r});
  }
  return add(comm, stream, std::move(parts));
}

ncclResult_t ncclBroadcast(const void* sent, void* received, size_t count, ncclDataType_t, int source,
                           ncclComm_t comm, cudaStream_t stream) {
  std::vector<Part> parts;
  if (static_cast<int>(comm->rank) == source)
    for (int r = 0; r < size_of(comm); ++r) parts.push_back({true, bytes(sent), count, r});
  parts.push_back({false, bytes(received), count, source});
  return add(comm, stream, std::move(parts));
}
