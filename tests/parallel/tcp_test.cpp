// Processes that find each other by an address: here threads, which is what `tern launch` starts too
// (processes_test.cpp). What they do then is in distributed_test.cpp and messages_test.cpp, which run over
// such connections as well.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "tern/parallel/tcp_rendezvous.h"
#include "tern/parallel/tcp_transport.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/each_process.h"
#include "tests/support/temporary_folder.h"

namespace tern::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Rendezvous place(int rank, int size, uint16_t port, const std::string& job = "") {
  return {.host = "localhost", .port = port, .rank = rank, .size = size, .job = job};
}

/// What each of the processes is told; empty for those that have met all others. The last one comes late.
std::vector<std::string> meet_all(
    const std::vector<Rendezvous>& processes, milliseconds timeout,
    const std::function<void()>& before_last = [] {}) {
  std::vector<std::string> told(processes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processes.size(); ++i)
    threads.emplace_back([&, i] {
      if (i + 1 == processes.size()) before_last();
      try {
        const auto peers = meet(processes[i], timeout);
        for (size_t r = 0; r < peers.size(); ++r)
          EXPECT_EQ(peers[r].is_open(), static_cast<int>(r) != processes[i].rank);
      } catch (const DistributedError& error) {
        told[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(Tcp, ProcessesMeetAmongStrangers) {
  const Socket reserved = Socket::reserve();
  const uint16_t port = reserved.port();
  std::vector<Rendezvous> processes;
  for (int rank = 0; rank < 5; ++rank) processes.push_back(place(rank, 5, port, "ours"));
  std::vector<Socket> silent;
  const auto told = meet_all(processes, seconds(20), [&] {
    const auto deadline = deadline_after(seconds(10));
    silent.push_back(Socket::connect("localhost", port, deadline));
    const Socket loud = Socket::connect("localhost", port, deadline);
    const std::string text(200, 'x');
    loud.send(text.data(), text.size(), deadline);
    char answer = 0;
    EXPECT_FALSE(loud.receive(&answer, 1, deadline));  // it is turned away
    EXPECT_LT(Clock::now(), deadline);
    expect_error<DistributedError>([&] { meet(place(1, 5, port, "another job's"), seconds(10)); },
                                   "has ended, or belongs to another job");
  });
  EXPECT_EQ(told, std::vector<std::string>(5));
}

TEST(Tcp, ProcessesThatDoNotFitAreTold) {
  const struct {
    std::vector<std::pair<int, int>> ranks_and_sizes;
    const char* text;
  } rows[] = {
      {{{0, 2}, {1, 3}}, "rank 1 is one of 3 processes, rank 0 of 2: give all the same number"},
      {{{0, 3}, {1, 3}, {1, 3}}, "there are two processes of rank 1: give each a rank of its own"},
      {{{0, 4}, {2, 4}},
       "rank 0 of 4 has waited 300 ms for ranks 1, 3: start them, or ask for fewer processes"},
      {{{1, 2}}, "cannot reach the process at localhost port"},
  };
  for (const auto& row : rows) {
    const Socket reserved = Socket::reserve();
    const uint16_t port = reserved.port();
    std::vector<Rendezvous> processes;
    for (const auto& [rank, size] : row.ranks_and_sizes) processes.push_back(place(rank, size, port));
    for (const std::string& text : meet_all(processes, milliseconds(300)))
      EXPECT_THAT(text, HasSubstr(row.text));
  }
  const Socket taken = Socket::listen(0, /*from_here_only=*/true);
  expect_error<DistributedError>([&] { meet(place(0, 2, taken.port()), milliseconds(100)); },
                                 "it is in use: choose another MASTER_PORT");
}

TEST(Tcp, AReservedPortIsKeptForOneListener) {
  const Socket reserved = Socket::reserve();
  for (const bool from_here_only : {true, false}) {
    const Socket first = Socket::listen(reserved.port(), from_here_only);
    EXPECT_EQ(first.port(), reserved.port());
    expect_error<DistributedError>([&] { Socket::listen(reserved.port(), true); }, "it is in use");
  }
}

TEST(Tcp, NobodyIsConnectedToItself) {
  uint16_t port = 0;
  while (port == 0 || port % 2 != 0)
    port = Socket::listen(0, true).port() + 1;  // one that connections leave from
  const auto end = deadline_after(seconds(2));
  for (std::string reason; Clock::now() < end;)
    EXPECT_FALSE(Socket::try_connect("127.0.0.1", port, end, reason).is_open());
}

TEST(Tcp, ProcessesMeetByAFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "meeting";
  std::vector<Rendezvous> processes;
  for (int rank = 0; rank < 4; ++rank)
    processes.push_back(
        *find_rendezvous({.init_method = "file://" + path.string(), .rank = rank, .world_size = 4}));
  const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
  const Socket reserved = Socket::reserve();
  const uint16_t port = reserved.port();
  write(fmt::format("tern an-earlier-run {} 127.0.0.1\n", port));
  EXPECT_EQ(meet_all({processes[1], processes[2], processes[3], processes[0]}, seconds(20),
                     [] { std::this_thread::sleep_for(milliseconds(200)); }),
            std::vector<std::string>(4));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  expect_error<DistributedError>([&] { meet(processes[1], milliseconds(50)); },
                                 "'" + path.string() + "' leads to: nobody has written it");
  write("a thesis");
  expect_error<DistributedError>([&] { meet(processes[0], milliseconds(50)); },
                                 "exists, and is no file by which processes meet: name a new one");
  expect_error<DistributedError>([&] { meet(processes[1], milliseconds(50)); },
                                 "something else stands in it");
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
  processes[0].file = folder.path() / "absent" / "meeting";
  expect_error<DistributedError>([&] { meet(processes[0], milliseconds(50)); },
                                 "cannot be written: No such file or directory");
}

TEST(Tcp, Options) {
  const struct {
    const char* method;
    int rank, world_size;
    const char* refusal;  ///< null: they are good
  } rows[] = {
      {"tcp://10.0.0.1:29500", 1, 2, nullptr},
      {"tcp://[fe80::1]:29500", 0, 1, nullptr},
      {"tcp://10.0.0.1", 1, 2, "has no host and port: 'tcp://10.0.0.1:29500'"},
      {"tcp://10.0.0.1:", 1, 2, "'' is no port"},
      {"tcp://10.0.0.1:70000", 1, 2, "'70000' is no port: a number from 1 to 65535"},
      {"file://x", 1, 2, "'file://x' has no path that begins with /"},
      {"http://x", 1, 2, "'http://x' is not known: 'env://', 'tcp://host:port', or 'file:///path'"},
      {"tcp://10.0.0.1:29500", 2, 2, "there is no rank 2 among 2 processes"},
      {"tcp://10.0.0.1:29500", -1, 2, "the rank of this process is not known: set RANK"},
  };
  for (const auto& row : rows) {
    const ProcessGroupOptions options{
        .init_method = row.method, .rank = row.rank, .world_size = row.world_size};
    if (row.refusal)
      expect_error<Error>([&] { find_rendezvous(options); }, row.refusal);
    else
      EXPECT_EQ(find_rendezvous(options)->port, 29500);
  }
  EXPECT_EQ(find_rendezvous({.init_method = rows[1].method, .rank = 0, .world_size = 1})->host, "fe80::1");
}

/// Two ends, each for a thread of its own.
template <class First, class Second>
void between_two(Timeout timeout, const First& first, const Second& second) {
  const Socket reserved = Socket::reserve();
  const uint16_t port = reserved.port();
  std::thread other([&] { second(open_tcp_transport(place(1, 2, port), timeout)); });
  first(open_tcp_transport(place(0, 2, port), timeout));
  other.join();
}

constexpr int kChannel = Transport::kMessages;

TEST(Tcp, MessagesOfAllLengthsArriveInOrder) {
  const std::vector<size_t> lengths{1, 15, 0x10000, 30'000'000, 3, 8'000'000, 7};
  const auto talk = [&](std::unique_ptr<Transport> end) {
    const int other = 1 - end->rank();
    for (const size_t n : lengths) {  // all of both, before anybody receives
      const std::string text(n, static_cast<char>('a' + n % 26));
      end->send(text.data(), n, other, kChannel);
    }
    for (const size_t n : lengths) {
      std::string text(n, ' ');
      end->receive(text.data(), n, other, kChannel);
      EXPECT_EQ(text, std::string(n, static_cast<char>('a' + n % 26)));
    }
    end->leave(nullptr, 0);
  };
  between_two(seconds(60), talk, talk);
}

TEST(Tcp, OnesThatAreNotTakenStay) {
  between_two(
      milliseconds(200),
      [](std::unique_ptr<Transport> end) {
        int number = 0;
        expect_error<DistributedError>([&] { end->receive(&number, sizeof number, 1, kChannel); },
                                       "rank 0 of 2 has waited 200 ms for rank 1");
        for (int i = 0; i < 100 && number == 0; ++i) try {
            end->receive(&number, sizeof number, 1, kChannel);
          } catch (const DistributedError&) {
          }
        EXPECT_EQ(number, 7);
        expect_error<DistributedError>([&] { end->receive(&number, sizeof number, 1, kChannel); },
                                       "rank 1 has sent 8 bytes, not 4");
        // It goes in the middle of its next word.
        expect_error<DistributedError>([&] { end->receive(&number, sizeof number, 1, kChannel); },
                                       "rank 1 has ended");
      },
      [](std::unique_ptr<Transport> end) {
        std::this_thread::sleep_for(milliseconds(400));
        const int number = 7;
        const double longer = 8;
        end->send(&number, sizeof number, 0, kChannel);
        end->send(&longer, sizeof longer, 0, kChannel);
      });
}

TEST(Tcp, EverybodyIsToldWhoEndedFirst) {
  const Socket reserved = Socket::reserve();
  const uint16_t port = reserved.port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const auto end = open_tcp_transport(place(rank, 3, port), seconds(20));
      if (rank == 2) return;
      int number = 0;  // 1 waits for 2, which ends, and 0 for 1
      expect_error<DistributedError>([&] { end->receive(&number, sizeof number, rank + 1, kChannel); },
                                     rank == 1
                                         ? "rank 2 has ended: the connection of rank 1 to it is over"
                                         : "rank 2 has ended: so says rank 1, which has ended for that");
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Tcp, WaitsOfSeveralThreadsAreIndependent) {
  between_two(
      seconds(30),
      [](std::unique_ptr<Transport> end) {
        std::vector<std::thread> threads;
        std::atomic<int> given_up = 0;
        for (int channel = 0; channel < 4; ++channel)
          threads.emplace_back([&, channel] {
            try {
              int number = 0;
              for (int i = 0; i < 200; ++i) {
                end->receive(&number, sizeof number, 1, channel);
                EXPECT_EQ(number, 1000 * channel + i);
              }
              end->receive(&number, sizeof number, 1, channel);
            } catch (const DistributedError& error) {
              EXPECT_THAT(error.what(), HasSubstr("rank 0 has ended"));
              ++given_up;
            }
          });
        std::this_thread::sleep_for(milliseconds(100));
        for (int channel = 0; channel < 4; ++channel) end->close(channel);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(given_up, 4);
        end->send(&given_up, 1, 1, kChannel);
        end->leave(nullptr, 0);
      },
      [](std::unique_ptr<Transport> end) {
        for (int i = 0; i < 200; ++i)
          for (int channel = 3; channel >= 0; --channel) {
            const int number = 1000 * channel + i;
            end->send(&number, sizeof number, 0, channel);
          }
        char is_over = 0;
        end->receive(&is_over, 1, 0, kChannel);
        end->leave(nullptr, 0);
      });
}

TEST(Tcp, OneAfterTheOther) {
  const Socket reserved = Socket::reserve();
  const std::string address = address_of(reserved);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        const auto group = ProcessGroup::start(
            {.timeout = seconds(30), .init_method = address, .rank = rank, .world_size = 3});
        EXPECT_EQ(group.local_rank(), rank);
        const Tensor x = full({3}, rank);
        group.all_reduce(x);
        EXPECT_TRUE(equal(x, full({3}, 3)));
      });
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace tern::dist
