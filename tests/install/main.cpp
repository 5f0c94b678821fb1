// The program of the outside project: a gradient through the installed headers and library.
// It prints what tests/install/run.cmake looks for.

#include <tern/tern.h>

#include <cstdio>

int main() {
  tern::Tensor x = tern::ones({2, 3});
  x.requires_grad_();
  tern::Tensor y = (x * x).sum();
  y.backward();
  std::printf("sum %g, gradient %g\n", y.item<double>(), x.grad().sum().item<double>());
  return 0;
}
