// What some of a group's processes do: messages from one to another, operations with a root, groups of some.
#include <gmock/gmock.h>

#include <thread>

#include "tern/parallel/process_group.h"
#include "tests/parallel/parallel_testing.h"
#include "tests/support/each_process.h"

namespace tern::dist {
namespace {

using ::testing::HasSubstr;

class MessagesTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, MessagesTest, ::testing::Values(1, 2, 3, 5));

/// 100 r + n for the n-th of the tensors of rank r.
std::vector<Tensor> numbered(const ProcessGroup& group, const Shape& shape,
                             const TensorOptions& options = {}) {
  std::vector<Tensor> list;
  for (int n = 0; n < group.size(); ++n) list.push_back(full(shape, 100 * group.rank() + n, options));
  return list;
}

/// Everything with a root, and exchanges, on one device.
void exchange_on(const ProcessGroup& group, Device device) {
  const int n = group.size(), r = group.rank(), last = n - 1;
  for (const DType dtype : {float32, bfloat16, int64}) {
    const TensorOptions options{.dtype = dtype, .device = device}, host{.dtype = dtype};
    const Tensor own = full({3, 2}, r + 1, options);
    group.reduce(own, last);
    EXPECT_TRUE(equal(own.cpu(), full({3, 2}, r == last ? n * (n + 1) / 2 : r + 1, host)));

    const auto all = group.gather(full({2}, r, options), last);
    ASSERT_EQ(all.size(), r == last ? static_cast<size_t>(n) : 0);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].device(), device);
      EXPECT_TRUE(equal(all[i].cpu(), full({2}, static_cast<int64_t>(i), host)));
    }

    const Tensor part = zeros({2, 3}, options);
    group.scatter(part, r == last ? numbered(group, {2, 3}, options) : std::vector<Tensor>(), last);
    EXPECT_TRUE(equal(part.cpu(), full({2, 3}, 100 * last + r, host)));

    const auto theirs = group.all_to_all(numbered(group, {5}, options));
    for (int other = 0; other < n; ++other)
      EXPECT_TRUE(equal(theirs[static_cast<size_t>(other)].cpu(), full({5}, 100 * other + r, host)));

    const Tensor largest = group.reduce_scatter(numbered(group, {2, 2}, options), ReduceOp::Max);
    EXPECT_EQ(largest.device(), device);
    EXPECT_TRUE(equal(largest.cpu(), full({2, 2}, 100 * last + r, host)));
  }
}

TEST_P(MessagesTest, OperationsWithARoot) {
  on_each(GetParam(), [](const ProcessGroup& group) {
    exchange_on(group, kCPU);
    const Tensor large = full({3'000'001}, group.rank() + 1.0);
    group.reduce(large, 0, ReduceOp::Avg);
    if (group.rank() == 0) {
      EXPECT_TRUE(equal(large, full({3'000'001}, (group.size() + 1) / 2.0)));
    }
    std::vector<Tensor> rows;
    for (int i = 0; i < group.size(); ++i) rows.push_back(full({1'500'000}, group.rank() + i));
    const int n = group.size();
    EXPECT_TRUE(equal(group.reduce_scatter(rows), full({1'500'000}, n * (n - 1) / 2 + n * group.rank())));
    EXPECT_EQ(group.gather(empty({0})).size(), group.rank() == 0 ? static_cast<size_t>(n) : 0);
    EXPECT_THROW(group.gather(large, n), ValueError);
    EXPECT_THROW(group.reduce(large, -1), ValueError);
    EXPECT_THROW(group.reduce(ones({1}, {.dtype = int64}), 0, ReduceOp::Avg), DTypeError);
    EXPECT_THROW(group.all_to_all(std::vector<Tensor>(static_cast<size_t>(n + 1), large)), ValueError);
  });
}

TEST_P(MessagesTest, GoRound) {
  const int n = GetParam();
  on_each(n, [n](const ProcessGroup& group) {
    const int r = group.rank(), next = (r + 1) % n, before = (r + n - 1) % n;
    if (n == 1) {
      EXPECT_THROW(group.send(ones({1}), 0), ValueError);
      EXPECT_THROW(group.irecv(ones({1}), 0), ValueError);
      return;
    }
    // All receive first, then send, beside an operation of all; in the order in which they were sent.
    const Tensor first = zeros({2, 2}), second = zeros({2'000'000}, {.dtype = float64});
    const Tensor columns = zeros({3, 4}).narrow(1, 1, 2);
    auto one = group.irecv(first, before), two = group.irecv(second, before),
         three = group.irecv(columns, before);
    const Tensor sum = ones({3});
    group.all_reduce(sum);
    group.send(full({2, 2}, r, {.dtype = float32}), next);
    group.send(full({2'000'000}, r + 0.5, {.dtype = float64}), next);
    group.send(full({4, 3}, r, {.dtype = float32}).t().narrow(0, 0, 3).narrow(1, 0, 2), next);
    for (auto* received : {&three, &two, &one}) received->get();
    EXPECT_TRUE(equal(sum, full({3}, n)));
    EXPECT_TRUE(equal(first, full({2, 2}, before)));
    EXPECT_TRUE(equal(second, full({2'000'000}, before + 0.5, {.dtype = float64})));
    EXPECT_TRUE(equal(columns, full({3, 2}, before)));
    EXPECT_GT(first.version(), 0u);
    EXPECT_THROW(group.send(first, r), ValueError);
    EXPECT_THROW(group.recv(first, n), ValueError);
  });
}

TEST_P(MessagesTest, GroupsOfSome) {
  const int n = GetParam();
  on_each(n, [n](const ProcessGroup& group) {
    const int r = group.rank();
    std::vector<int> even, odd;
    for (int i = n; i-- > 0;) (i % 2 ? odd : even).push_back(i);
    const auto mine = group.new_group(even);
    EXPECT_EQ(mine.has_value(), r % 2 == 0);
    const auto others = odd.empty() ? std::nullopt : group.new_group(odd);
    const auto& part = mine ? mine : others;
    ASSERT_TRUE(part);
    EXPECT_EQ(part->rank(), r / 2);
    EXPECT_EQ(part->size(), static_cast<int>(mine ? even.size() : odd.size()));
    const Tensor x = full({1'500'000}, r);
    part->all_reduce(x);
    double sum = 0;
    for (const int i : mine ? even : odd) sum += i;
    EXPECT_TRUE(equal(x, full({1'500'000}, sum)));
    exchange_on(*part, kCPU);
    EXPECT_EQ(part->broadcast(std::to_string(r), part->size() - 1),
              std::to_string((mine ? even : odd).front()));
    if (part->size() > 1) {
      const int peer = part->rank() ^ 1;
      if (peer < part->size()) {
        const Tensor theirs = zeros({1});
        part->send(full({1}, r, {.dtype = float32}), peer);
        part->recv(theirs, peer);
        EXPECT_EQ(theirs.item<int>(), r ^ 2);
      }
      EXPECT_THROW(part->new_group({0}), ValueError);
    }
    group.barrier();
    EXPECT_THROW(group.new_group({}), ValueError);
    EXPECT_THROW(group.new_group({0, 0}), ValueError);
    EXPECT_THROW(group.new_group({n}), ValueError);
  });
}

TEST(Messages, ThatDoNotFitAreTold) {
  on_each(2, [](const ProcessGroup& group) {
    if (group.rank() == 0) {
      group.send(ones({3}), 1);
      group.send(ones({2, 3}), 1);
      EXPECT_THAT(
          message_of<DistributedError>([&] { group.gather(ones({3}), 0); }),
          HasSubstr("rank 0 calls gather to rank 0 of 3 float32, rank 1 gather to rank 1 of 3 float32"));
    } else {
      EXPECT_EQ(message_of<DistributedError>([&] { group.recv(zeros({4}), 0); }),
                "recv: rank 0 has sent 3 float32, the tensor has 4 float32");
      const Tensor next = zeros({2, 3});
      group.recv(next, 0);
      EXPECT_TRUE(equal(next, ones({2, 3})));
      EXPECT_THROW(group.gather(ones({3}), 1), DistributedError);
    }
    group.barrier();
    const auto part = group.new_group({0, 1});
    if (group.rank() == 0) {
      EXPECT_THAT(message_of<DistributedError>([&] { part->barrier(); }),
                  HasSubstr("rank 0 calls barrier, rank 1 all_reduce (sum)"));
    } else {
      EXPECT_THAT(message_of<DistributedError>([&] { part->all_reduce(ones({2})); }),
                  HasSubstr("rank 0 calls barrier"));
    }
  });
}

TEST(Messages, NobodyWaitsForThoseThatEnded) {
  EXPECT_THROW(on_each(3,
                       [](const ProcessGroup& group) {
                         const auto part = group.new_group({0, 1});
                         if (group.rank() == 2) throw ValueError("no data");
                         EXPECT_THROW(group.recv(ones({1}), 2), DistributedError);
                         EXPECT_THROW(group.recv(ones({1}), 2), DistributedError);
                       }),
               ValueError);
  on_each(2, [](const ProcessGroup& group) {
    if (group.rank() == 0) return;
    EXPECT_EQ(message_of<DistributedError>([&] { group.recv(ones({1}), 0); }), "rank 0 has left the group");
  });
  on_each(2, [](const ProcessGroup& group) {
    const Tensor x = ones({1});
    if (group.rank() == 0) group.irecv(x, 1);  // and does not wait for it
  });
  on_each(2, [](const ProcessGroup& group) {
    auto part = group.new_group({0, 1});
    if (group.rank() == 0) return part.reset();
    EXPECT_THAT(message_of<DistributedError>([&] { part->barrier(); }),
                HasSubstr("rank 0 has left the group, rank 1 calls barrier"));
  });
}

class MessagesOnGpus : public parallel::ParallelTest {};

TEST_F(MessagesOnGpus, Travel) {
  on_each(3, [](const ProcessGroup& group) {
    const Device device = group.device();
    exchange_on(group, device);
    const int r = group.rank();
    const Tensor x = full({4}, r, {.device = device}) + 0.5, y = zeros({4}, {.device = device});
    group.send(x, (r + 1) % 3);
    group.recv(y, (r + 2) % 3);
    EXPECT_TRUE(equal(y.cpu(), full({4}, (r + 2) % 3 + 0.5)));
    const auto part = group.new_group({0, 2});
    if (part) exchange_on(*part, device);
  });
}

}  // namespace
}  // namespace tern::dist
