// 11. What processes tell each other, as in "Writing Distributed Applications with PyTorch": messages from
// one to another, operations of all and of some, and a sum that goes round a ring. Alone, four threads take
// the parts of processes.
// ./11_messages, or tern launch -n 4 ./11_messages
#include <tern/tern.h>

#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace tern;

/// Every process says something; the first prints all of it, in the order of ranks.
void say(const dist::ProcessGroup& group, const std::string& text) {
  const std::vector<std::string> all = group.all_gather(text);
  if (group.rank() == 0)
    for (size_t r = 0; r < all.size(); ++r) std::cout << "  rank " << r << ": " << all[r] << '\n';
}
void title(const dist::ProcessGroup& group, const char* text) {
  if (group.rank() == 0) std::cout << text << '\n';
}

/// The sum of all processes' tensors, with messages alone: what came from the left is added, and goes on to
/// the right.
Tensor ring_sum(const dist::ProcessGroup& group, const Tensor& mine) {
  const int n = group.size(), right = (group.rank() + 1) % n, left = (group.rank() + n - 1) % n;
  Tensor sum = mine.clone(), passing = mine.clone();
  for (int step = 1; step < n; ++step) {
    Tensor received = empty_like(passing);
    auto arrived = group.irecv(received, left);  // does not wait,
    group.send(passing, right);                  // nor does this
    arrived.get();
    sum += received;
    passing = received;
  }
  return sum;
}

void run(const dist::ProcessGroup& group) {
  const int r = group.rank(), n = group.size();
  title(group, "A message from 0 to 1:");
  Tensor x = zeros({1});
  if (r == 0) {
    x += 1;
    group.send(x, 1);
  } else if (r == 1) {
    group.recv(x, 0);
  }
  say(group, "has data " + std::to_string(x.item<int>()));

  title(group, "The sum over 0 and 1 only:");
  const auto pair = group.new_group({0, 1});  // all call it; those that are not in it get nothing
  Tensor y = ones({1});
  if (pair) pair->all_reduce(y, dist::ReduceOp::Sum);
  say(group, "has data " + std::to_string(y.item<int>()));

  title(group, "Parts from 0, their squares back to it:");
  std::vector<Tensor> parts;
  if (r == 0)
    for (int i = 0; i < n; ++i) parts.push_back(full({2}, i + 1.0));
  Tensor part = zeros({2});
  group.scatter(part, parts, /*source=*/0);
  const std::vector<Tensor> squares = group.gather(part * part, /*destination=*/0);
  if (r == 0) std::cout << stack(squares, 0) << '\n';

  title(group, "Round a ring, and by all_reduce:");
  const Tensor mine = full({3}, r + 0.5), around = ring_sum(group, mine);
  group.all_reduce(mine);
  say(group,
      std::to_string(around[0].item<double>()) + (allclose(around, mine) ? ", the same" : ", another"));
}

int main() try {
  {
    const dist::ProcessGroup group = dist::ProcessGroup::start();
    if (group.size() > 1) return run(group), 0;
  }
  std::vector<std::thread> threads;
  for (dist::ProcessGroup& group : dist::ProcessGroup::simulate(4))
    threads.emplace_back([group] { run(group); });
  for (std::thread& thread : threads) thread.join();
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
