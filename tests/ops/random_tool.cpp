// A helper of random_in_torch.py: draws what it is told, from a state that PyTorch saved.
//   random_tool IN OUT
// IN is {'state': bytes, 'draws': [[name, dtype, shape, a, b], ...]}; OUT is {'drawn': [tensors], 'states':
// [bytes after each]}.
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "tern/io/serialize.h"
#include "tern/tern.h"

namespace {

using namespace tern;

struct Draw {
  Shape shape;
  TensorOptions options;
  double a = 0, b = 0;
  Tensor filled(const std::function<void(Tensor&)>& fill) const {
    Tensor x = empty(shape, options);
    fill(x);
    return x;
  }
  Tensor rising(double from, double to) const { return linspace(from, to, shape[0], options); }
  int64_t low() const { return static_cast<int64_t>(a); }
  int64_t high() const { return static_cast<int64_t>(b); }
};

/// Every other column of a matrix that lies column by column.
Tensor strided(const Draw& d) {
  return empty({d.shape[0], d.shape[1], 2}, d.options).select(2, 1).permute({1, 0});
}

const std::map<std::string, std::function<Tensor(const Draw&)>> kDraws = {
    {"rand", [](const Draw& d) { return rand(d.shape, d.options); }},
    {"randn", [](const Draw& d) { return randn(d.shape, d.options); }},
    {"uniform_", [](const Draw& d) { return d.filled([&](Tensor& x) { uniform_(x, d.a, d.b); }); }},
    {"normal_", [](const Draw& d) { return d.filled([&](Tensor& x) { normal_(x, d.a, d.b); }); }},
    {"exponential_", [](const Draw& d) { return d.filled([&](Tensor& x) { exponential_(x, d.a); }); }},
    {"bernoulli_", [](const Draw& d) { return d.filled([&](Tensor& x) { bernoulli_(x, d.a); }); }},
    {"random_", [](const Draw& d) { return d.filled([](Tensor& x) { random_(x); }); }},
    {"randint", [](const Draw& d) { return randint(d.low(), d.high(), d.shape, d.options); }},
    {"randperm", [](const Draw& d) { return randperm(d.shape[0], d.options); }},
    {"bernoulli", [](const Draw& d) { return bernoulli(linspace(0, 1, d.shape[0], d.options)); }},
    {"poisson", [](const Draw& d) { return poisson(d.rising(0, d.a)); }},
    {"standard_gamma", [](const Draw& d) { return standard_gamma(d.rising(0.05, d.a)); }},
    {"binomial", [](const Draw& d) { return binomial(d.rising(0, d.a).round(), d.rising(0, 1)); }},
    {"normal_each", [](const Draw& d) { return normal(d.rising(-1, d.a), d.rising(0, 2)); }},
    {"multinomial", [](const Draw& d) { return multinomial(d.rising(0.1, 3), d.low(), d.b != 0); }},
    {"dropout", [](const Draw& d) { return dropout(ones(d.shape, d.options), d.a); }},
    {"dropout2d", [](const Draw& d) { return dropout2d(ones(d.shape, d.options), d.a); }},
    {"strided_dropout",
     [](const Draw& d) {
       return dropout(ones(d.shape, d.options).permute({2, 0, 1}), d.a).contiguous();
     }},
    {"strided_bernoulli",
     [](const Draw& d) {
       return bernoulli(linspace(0, 1, d.shape[0] * d.shape[1], d.options).view(d.shape).t());
     }},
    {"strided_rand_like", [](const Draw& d) { return rand_like(strided(d)); }},
    {"strided_randn_like", [](const Draw& d) { return randn_like(strided(d)); }},
    {"strided_randint_like", [](const Draw& d) { return randint_like(strided(d), d.low(), d.high()); }},
    {"strided_uniform_",
     [](const Draw& d) {
       Tensor x = strided(d);
       uniform_(x, d.a, d.b);
       return x.contiguous();
     }},
    {"strided_normal_",
     [](const Draw& d) {
       Tensor x = strided(d);
       normal_(x, d.a, d.b);
       return x.contiguous();
     }},
    {"linear", [](const Draw& d) { return nn::Linear(d.shape[0], d.shape[1]).weight.detach(); }},
    {"conv2d", [](const Draw& d) { return nn::Conv2d(d.shape[0], d.shape[1], 3).weight.detach(); }},
    {"embedding", [](const Draw& d) { return nn::Embedding(d.shape[0], d.shape[1]).weight.detach(); }},
};

void run(char** argv) {
  const Value file = load(argv[1]);
  set_rng_state(file["state"].as_tensor());
  std::vector<Value> drawn, states;
  for (const Value& row : file["draws"].as_list()) {
    const auto& fields = row.as_sequence();
    Draw draw;
    draw.options = {.dtype = parse_dtype(fields[1].as_str())};
    for (const Value& size : fields[2].as_sequence()) draw.shape.push_back(size.as_int());
    draw.a = fields[3].as_float();
    draw.b = fields[4].as_float();
    drawn.push_back(kDraws.at(fields[0].as_str())(draw));
    states.push_back(get_rng_state());
  }
  save({{"drawn", Value::list(std::move(drawn))}, {"states", Value::list(std::move(states))}}, argv[2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: random_tool IN OUT\n");
    return 2;
  }
  try {
    run(argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
