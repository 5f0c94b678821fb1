"""torch.func: derivatives, vmap, calls of modules with other tensors; beside closed forms, and beside PyTorch's where it has torch.func.
The tutorials on gradients of single examples, on ensembles, and on Jacobians run as they stand."""

import contextlib
import copy
import functools
import gc
import io
import unittest

import torch as pytorch

import tern
import tern as torch
from tern import nn

X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]

# What is computed, and what it must be; both in the place of names below.
SAME = [
    ("grad(lambda x: x.sin())(s)", "s.cos()"), ("grad(grad(lambda x: x.sin()))(s)", "-s.sin()"),
    ("grad(grad(grad(lambda x: x ** 5)))(s)", "60 * s ** 2"), ("grad(lambda x: (x ** 3).sum())(x)", "3 * x ** 2"),
    ("grad(lambda a, b: (a * b * b).sum(), argnums=1)(x, y)", "2 * x * y"),
    ("grad(lambda a, b: (a * b * b).sum(), argnums=(0, -1))(x, y)", "(y * y, 2 * x * y)"),
    ("grad(lambda d: (d['a'] * d['b'][0]).sum())({'a': x, 'b': [y]})", "{'a': y, 'b': [x]}"),
    ("grad(lambda x: (x.sum(), x * 2), has_aux=True)(x)", "(torch.ones(2, 3), 2 * x)"),
    ("grad_and_value(lambda x: x.square().sum())(x)", "(2 * x, x.square().sum())"),
    ("grad_and_value(lambda x: (x.square().sum(), 'kept'), has_aux=True)(x)", "(2 * x, (x.square().sum(), 'kept'))"),
    ("grad(lambda x: torch.zeros(()))(s)", "torch.zeros(())"), ("grad(lambda a, b: a.sum())(x, b=y)", "torch.ones(2, 3)"),
    ("vjp(lambda x: x.sin(), x)[0]", "x.sin()"), ("vjp(lambda x: x.sin(), x)[1](y)", "(x.cos() * y,)"),
    ("vjp(lambda a, b: {'p': a * b, 'q': a.sum()}, x, y)[1]({'p': x, 'q': s})", "(y * x + s, x * x)"),
    ("vjp(lambda x: (x * 2, x * 3), x, has_aux=True)[2]", "x * 3"), ("jacrev(torch.sin)(v)", "v.cos().diag()"),
    ("jacfwd(torch.sin)(v)", "v.cos().diag()"), ("jacrev(lambda a, b: a * b, argnums=(0, 1))(v, w)", "(w.diag(), v.diag())"),
    ("jacfwd(lambda a, b: a * b, argnums=1)(v, w)", "v.diag()"), ("jacrev(lambda x: x.sum(1))(x).shape", "torch.Size([2, 2, 3])"),
    ("jacfwd(lambda x: x.sum(1))(x)", "jacrev(lambda x: x.sum(1))(x)"),
    ("jacrev(lambda v: {'a': v * 2, 'b': v.sum()})(v)", "{'a': 2 * torch.eye(3), 'b': torch.ones(3)}"),
    ("jacrev(lambda d: d['k'] ** 2)({'k': v})", "{'k': (2 * v).diag()}"),
    ("jacfwd(lambda d: d['k'] ** 2)({'k': v})", "{'k': (2 * v).diag()}"),
    ("jacrev(lambda x: (x ** 2, x), has_aux=True)(v)", "((2 * v).diag(), v)"),
    ("jacfwd(lambda x: (x ** 2, x), has_aux=True)(v)", "((2 * v).diag(), v)"),
    ("jacrev(lambda x: x * x, chunk_size=2)(v)", "(2 * v).diag()"), ("jacrev(lambda x: torch.ones(2))(v)", "torch.zeros(2, 3)"),
    ("hessian(lambda v: (v ** 3).sum())(v)", "(6 * v).diag()"),
    ("hessian(lambda a, b: (a * b).sum(), argnums=(0, 1))(v, w)[0][1]", "torch.eye(3)"),
    ("jacfwd(jacrev(lambda v: (v ** 3).sum()))(v)", "(6 * v).diag()"),
    ("jacfwd(jacfwd(lambda v: v.sum() ** 2))(v)", "2 * torch.ones(3, 3)"),
    ("jacrev(jacfwd(lambda v: v.sin()))(v).diagonal(dim1=0, dim2=1).diagonal()", "-v.sin()"),
    ("jvp(torch.sin, (x,), (y,))", "(x.sin(), x.cos() * y)"), ("jvp(lambda a, b: a * b, (x, y), (y, x))[1]", "y * y + x * x"),
    ("jvp(lambda d: (d['k'] * 2, d['k'].sum()), ({'k': v},), ({'k': w},))[1]", "(2 * w, w.sum())"),
    ("jvp(lambda x: (x ** 2, 'kept'), (v,), (w,), has_aux=True)", "(v ** 2, 2 * v * w, 'kept')"),
    ("jvp(lambda t: jvp(torch.sin, (t,), (w,))[1], (v,), (w,))[1]", "-v.sin() * w * w"),
    ("jvp(lambda x: torch.ones(2), (v,), (w,))[1]", "torch.zeros(2)"),
    ("jvp(grad(lambda v: (v ** 3).sum()), (v,), (w,))[1]", "6 * v * w"),
    ("grad(lambda v: jvp(torch.sin, (v,), (w,))[1].sum())(v)", "-v.sin() * w"),
    ("grad(lambda v: vjp(torch.sin, v)[1](v)[0].sum())(v)", "v.cos() - v * v.sin()"),
    ("jacrev(vjp(torch.sin, v)[1])(w)[0]", "v.cos().diag()"), ("jacrev(linearize(torch.sin, v)[1])(w)", "v.cos().diag()"),
    ("linearize(torch.sin, v)[1](w)", "v.cos() * w"),
    ("linearize(lambda a, b: (a * b, a), v, w)[1](w, v)", "(w * w + v * v, w)"), ("linearize(torch.sin, v)[0]", "v.sin()"),
    ("vmap(torch.dot)(x, y)", "(x * y).sum(1)"), ("vmap(lambda a, b: a * b, in_dims=(0, None))(x, v)", "x * v"),
    ("vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x)", "2 * x"), ("vmap(lambda a: a * 2, in_dims=-1)(x)", "2 * x.t()"),
    ("vmap(lambda a: a * 2, out_dims=-1)(x)", "2 * x.t()"), ("vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x)", "(x.t(), x.sum(1))"),
    ("vmap(lambda d, n: d['a'] + d['b'] * n, in_dims=({'a': 0, 'b': None}, None))({'a': x, 'b': v}, 3)", "x + 3 * v"),
    ("vmap(lambda d: {'s': d['a'].sum()})({'a': x})", "{'s': x.sum(1)}"),
    ("vmap(lambda p: p[0] * p[1], in_dims=((0, None),))((x, v))", "x * v"),
    ("vmap(vmap(torch.mul, in_dims=(0, None)), in_dims=(None, 0))(v, w)", "w[:, None] * v"),
    ("vmap(torch.sum, chunk_size=1)(x)", "x.sum(1)"), ("vmap(lambda a, k=1: a * k)(x, k=4)", "4 * x"),
    ("vmap(lambda a: torch.ones(2), out_dims=0)(x)", "torch.ones(2, 2)"), ("vmap(grad(lambda a: (a ** 3).sum()))(x)", "3 * x ** 2"),
    ("vmap(grad(grad(torch.sin)))(v)", "-v.sin()"), ("vmap(jacrev(torch.sin))(x)", "torch.stack([row.cos().diag() for row in x])"),
    ("vmap(hessian(lambda a: (a ** 3).sum()))(x)", "torch.stack([(6 * row).diag() for row in x])"),
    ("vmap(vjp(torch.sin, v)[1])(torch.eye(3))", "(v.cos().diag(),)"),
    ("vmap(lambda t: jvp(torch.sin, (v,), (t,))[1])(torch.eye(3))", "v.cos().diag()"),
    ("grad(lambda x: vmap(torch.dot)(x, x).sum())(x)", "2 * x"), ("jacrev(vmap(torch.sum))(x).sum((0,))", "torch.ones(2, 3)"),
    ("vmap(functools.partial(torch.mul, v))(x)", "x * v"), ("torch.vmap(torch.sum)(x)", "x.sum(1)"),
    ("functionalize(torch.sin)(v)", "v.sin()"),
]

REFUSED = [
    ("grad(lambda x: x)(v)", RuntimeError, "Expected f\\(\\*args\\) to return a scalar tensor"),
    ("grad(lambda x: 3)(v)", TypeError, "return a tensor"),
    ("grad(lambda x: x.sum(), argnums=2)(v)", IndexError, "Got argnum=2, but only 1"),
    ("grad(lambda x: x.sum(), argnums=(0, 0))(v)", ValueError, "unique"),
    ("grad(lambda x: x.sum(), argnums=1.5)(v)", TypeError, "argnum must be int"),
    ("grad(lambda x: x.sum(), argnums=())(v)", ValueError, "non-empty"),
    ("grad(lambda x: x.sum())(torch.ones(2).long())", RuntimeError, "floating-point"),
    ("grad(lambda x: x.sum())(3.0)", TypeError, "by tensors"),
    ("grad(lambda x: x.sum(), has_aux=True)(v)", TypeError, "\\(output, aux\\)"),
    ("vjp(torch.sin, v)[1]((v, v))", ValueError, "built like the output"),
    ("vjp(torch.sin, v)[1](x)", RuntimeError, "shape \\(3,\\), got \\(2, 3\\)"),
    ("jvp(torch.sin, v, v)", TypeError, "must be non-empty tuples"), ("jvp(torch.sin, (v,), (x,))", RuntimeError, "primal's shape"),
    ("jvp(torch.sin, (v,), (v, v))", ValueError, "built like the primals"),
    ("jvp(lambda x: torch.ones(1), (v,), (v,), strict=True)", RuntimeError, "strict"),
    ("jacrev(lambda x: 3)(v)", TypeError, "must return tensors"), ("jacrev(torch.sin, chunk_size=0)(v)", ValueError, "chunk_size"),
    ("vmap(torch.sin)()", ValueError, "got no inputs"), ("vmap(torch.sin, in_dims=None)(v)", ValueError, "expected `in_dims` to be int"),
    ("vmap(torch.mul, in_dims=(None, None))(v, v)", ValueError, "at least one"),
    ("vmap(torch.sin, in_dims=1)(v)", ValueError, "-1 <= in_dim < 1"),
    ("vmap(torch.mul)(v, 3)", ValueError, "None as the respective in_dim"),
    ("vmap(torch.mul, in_dims=(0,))(v, v)", ValueError, "not compatible with the structure of `inputs`"),
    ("vmap(torch.mul)(x, v)", ValueError, "same size"), ("vmap(lambda a: 3)(v)", ValueError, "must only return Tensors"),
    ("vmap(torch.sin, out_dims=(0, 0))(v)", ValueError, "structure of `outputs`"),
    ("vmap(lambda a: torch.rand(2))(v)", RuntimeError, "randomness error mode"),
    ("vmap(torch.sin, randomness='some')(v)", RuntimeError, "Only allowed"),
    ("vmap(torch.sin, out_dims=None)(v)", ValueError, "when out_dim is None"),
    ("vmap(torch.sin, chunk_size=-1)(v)", ValueError, "chunk_size"), ("vmap(torch.sin)(torch.ones(0, 2))", ValueError, "no examples"),
    ("functional_call(net, {'weight': 3}, v)", TypeError, "'weight' must be a tensor"),
    ("functional_call(net, 3, v)", TypeError, "to be a dict"),
    ("functional_call(net, ({'a': v}, {'a': v}), v)", ValueError, "a appeared in multiple"),
    ("functional_call(net, {'inner.a': v}, v)", AttributeError, "no module 'inner'"),
    ("functional_call(net, {'in_features': v}, v)", TypeError, "'in_features' is int"),
    ("functional_call(3, {}, v)", TypeError, "expected an nn.Module"),
    ("functional_call(net, {'weight': x}, v, strict=True)", RuntimeError, "Missing key\\(s\\): 'bias'"),
    ("stack_module_state([])", RuntimeError, "at least one model"), ("stack_module_state([net, nn.ReLU()])", RuntimeError, "same class"),
    ("stack_module_state([net, nn.Linear(3, 2).eval()])", RuntimeError, "same training/eval mode"),
]


def names_of(t):
    import tern.func
    func = tern.func if t is tern else t.func
    return {"torch": t, "nn": t.nn, "x": t.tensor(X), "y": t.tensor(X).cos(), "s": t.tensor(0.75), "v": t.tensor([0.5, -1.0, 2.0]),
            "w": t.tensor([1.5, 3.0, -0.5]), "functools": functools, "net": t.nn.Linear(3, 2),
            **{name: getattr(func, name) for name in tern.func.__all__}}


class Func(unittest.TestCase):
    def close(self, found, wanted, message=None):
        flat, spec = torch.utils._pytree.tree_flatten(found)
        others, other_spec = torch.utils._pytree.tree_flatten(wanted)
        self.assertEqual(repr(spec), repr(other_spec), message)
        for one, other in zip(flat, others):
            if isinstance(one, (tern.Tensor, pytorch.Tensor)):
                self.assertEqual(tuple(one.shape), tuple(other.shape), message)
                pytorch.testing.assert_close(*(pytorch.tensor(each.tolist()) for each in (one, other)), rtol=1e-4, atol=1e-5, msg=message)
            else:
                self.assertEqual(one, other, message)

    def test_values(self):
        names = names_of(tern)
        for text, expected in SAME:
            with self.subTest(text):
                found = eval(text, names)
                self.close(found, eval(expected, names))
                for tensor in torch.utils._pytree.tree_leaves(found):
                    self.assertFalse(isinstance(tensor, torch.Tensor) and tensor.requires_grad)

    @unittest.skipUnless(hasattr(pytorch, "func"), "this PyTorch has no torch.func")
    def test_values_are_pytorchs(self):
        names, theirs = names_of(tern), names_of(pytorch)
        for text, _ in SAME:
            if "'kept'" not in text:  # aux that is no tensor, which PyTorch refuses
                with self.subTest(text):
                    self.close(eval(text, names), eval(text, theirs))

    def test_refused(self):
        for text, error, words in REFUSED:
            with self.subTest(text):
                names = names_of(tern)
                with self.assertRaisesRegex(error, words):
                    eval(text, names)
                self.assertEqual([name for name, _ in names["net"].named_parameters()], ["weight", "bias"])
                self.assertTrue(tern.is_grad_enabled())

    def test_derivatives_go_on_where_something_outside_requires_them(self):
        from tern.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        x = torch.linspace(-1, 1, 5)

        def u(t):
            return net(t.reshape(1, 1)).squeeze()

        def residual(t):
            return grad(grad(u))(t) + t

        vmap(residual)(x).square().mean().backward()  # as networks for differential equations learn
        ours = [parameter.grad for parameter in net.parameters()]
        t = x.clone().requires_grad_()
        first, = torch.autograd.grad(net(t[:, None]).sum(), t, create_graph=True)
        second, = torch.autograd.grad(first.sum(), t, create_graph=True)
        for parameter in net.parameters():
            parameter.grad = None
        (second + t).square().mean().backward()
        for parameter, found in zip(net.parameters(), ours):
            if parameter.grad is not None:
                self.assertTrue(torch.allclose(parameter.grad, found if found is not None else parameter.grad * 0, atol=1e-5))
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        v = torch.tensor([3.0, 4.0])
        scaled = w * 1
        rows = [
            ("grad", lambda: grad(lambda a: (a * w).pow(2).sum())(v)), ("argument", lambda: grad(lambda a: a.pow(2).sum())(w)),
            ("second argument", lambda: grad(lambda a, b: (a * b).sum())(v, w)),
            ("computed", lambda: grad(lambda a: (a * scaled).sum())(v)), ("jacrev", lambda: jacrev(lambda a: a * w)(v)),
            ("jacfwd", lambda: jacfwd(lambda a: a * w)(v)), ("hessian", lambda: hessian(lambda a: (a * a * w).sum())(v)),
            ("vjp", lambda: vjp(lambda a: a * w, v)[1](v)[0]), ("jvp", lambda: jvp(lambda a: a * w, (v,), (v,))[1]),
            ("tangent", lambda: jvp(torch.sin, (v,), (w,))[1]), ("cotangent", lambda: vjp(torch.sin, v)[1](w)[0]),
            ("linearize", lambda: linearize(lambda a: a * w, v)[1](v)), ("vmap", lambda: vmap(lambda a: a * w[0])(v)),
            ("value", lambda: vjp(lambda a: a * w, v)[0]),
        ]
        for name, compute in rows:
            with self.subTest(name):
                result = compute()
                self.assertTrue(result.requires_grad)
                gradient, = torch.autograd.grad(result.sum(), w)
                self.assertEqual(gradient.shape, (2,))
                with torch.no_grad():
                    silent = compute()
                self.assertFalse(silent.requires_grad)
                self.assertTrue(torch.allclose(silent, result.detach()))
        self.assertIsNone(w.grad)
        used = functools.partial(torch.nn.functional.linear, weight=w[None].detach())
        self.assertFalse(jacrev(used)(v).requires_grad)
        self.assertEqual(torch.autograd.grad(grad(lambda a: a ** 3)(w[1]), w)[0].tolist(), [0, 12])

    def test_randomness(self):
        from tern.func import vmap
        x = torch.zeros(6, 4)
        for kind, distinct in (("same", 1), ("different", 6)):
            torch.manual_seed(1)
            rows = vmap(lambda a: a + torch.rand(4), randomness=kind)(x).tolist()
            self.assertEqual(len(set(map(tuple, rows))), distinct)
            self.assertNotEqual(torch.rand(4).tolist(), rows[-1])
        net = nn.Dropout(0.5)
        self.assertEqual(vmap(net.eval())(x).tolist(), x.tolist())
        with self.assertRaisesRegex(RuntimeError, "randomness"):
            vmap(net.train())(x)

    def test_functional_call(self):
        from tern.func import functional_call, grad

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
                self.second.weight = self.first.weight
                self.gain = nn.Parameter(torch.ones(2))
                self.register_buffer("count", torch.zeros(1))
                self.plain = torch.ones(1)

            def forward(self, x, times=1):
                self.count = self.count + 1
                if times == 0:
                    raise KeyError("mine")
                return self.second(self.first(x)) * self.gain * times * self.plain

        net = Tied()
        before = {name: (tensor, tensor.tolist()) for name, tensor in net.named_parameters()}
        before["first.weight"][0].tag = "kept"
        x, w = torch.ones(1, 2), torch.eye(2) * 3
        call = nn.utils.stateless.functional_call
        self.assertEqual(call(net, {"first.weight": w}, x).tolist(), [[9, 9]])
        self.assertEqual(call(net, {"second.weight": w, "gain": torch.full((2,), 2.0)}, (x,), {"times": 2}).tolist(), [[36, 36]])
        loose = call(net, {"first.weight": w}, x, tie_weights=False)
        self.assertTrue(torch.allclose(loose, net.second(x * 3)))
        with self.assertRaisesRegex(ValueError, "multiple values for keys"):
            call(net, {"first.weight": w, "second.weight": w * 2}, x)
        self.assertEqual(call(net, {"first.weight": w, "plain": torch.ones(1) * 5}, x).tolist(), [[45, 45]])
        given = {"count": torch.zeros(1)}
        counted = net.count.item()
        call(net, given, x)
        self.assertEqual((given["count"].item(), net.count.item()), (1, counted))
        with self.assertRaisesRegex(KeyError, "mine"):
            call(net, {"first.weight": w, "gain": w[0], "count": w, "fresh": w}, (x,), {"times": 0})
        self.assertFalse(hasattr(net, "fresh"))
        gc.collect()
        self.assertEqual([name for name, _ in net.named_parameters()], list(before))
        self.assertEqual(list(net.state_dict()), ["gain", "count", "first.weight", "second.weight"])
        for name, tensor in net.named_parameters():
            self.assertIs(tensor, before[name][0])
            self.assertEqual(tensor.tolist(), before[name][1])
        self.assertEqual(net.first.weight.tag, "kept")
        gradient = grad(lambda p: functional_call(net, p, (x,)).sum())({"first.weight": w})
        self.assertEqual(gradient["first.weight"].tolist(), [[6, 6], [6, 6]])
        self.assertIsNone(net.first.weight.grad)

    def test_functional_call_of_layers(self):
        from tern.func import functional_call
        rows = [
            (nn.Linear(3, 2), torch.ones(4, 3)), (nn.Conv2d(1, 2, 3), torch.ones(1, 1, 5, 5)), (nn.LSTM(3, 2, 2), torch.ones(4, 1, 3)),
            (nn.BatchNorm1d(3), torch.arange(12.0).reshape(4, 3)), (nn.Embedding(4, 3), torch.tensor([1, 2])),
            (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), torch.arange(24.0).reshape(3, 2, 4)),
            (nn.LayerNorm(3), torch.arange(12.0).reshape(4, 3)),
            (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.PReLU()), torch.arange(12.0).reshape(4, 3)),
            (nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", nn.Tanh()), torch.ones(2, 3)),
        ]
        for net, x in rows:
            with self.subTest(type(net).__name__):
                other = copy.deepcopy(net)
                tensors = {name: torch.sin(torch.arange(float(tensor.numel()))).reshape(tensor.shape).abs().to(tensor.dtype)
                           for name, tensor in net.state_dict().items()}
                learned = [tensors[name].requires_grad_() for name, _ in net.named_parameters()]
                other.load_state_dict(tensors)
                state = {name: tensor.tolist() for name, tensor in net.state_dict().items()}
                found, wanted = functional_call(net, tensors, x), other(x)
                found, wanted = (found[0], wanted[0]) if isinstance(found, tuple) else (found, wanted)
                self.assertTrue(torch.allclose(found, wanted, atol=1e-5))
                gradients = torch.autograd.grad(found.square().sum(), learned, allow_unused=True)
                wanted.square().sum().backward()
                for gradient, parameter in zip(gradients, other.parameters()):
                    self.assertTrue(gradient is None and parameter.grad is None or torch.allclose(gradient, parameter.grad, atol=1e-4))
                self.assertEqual({name: tensor.tolist() for name, tensor in net.state_dict().items()}, state)
                for name, buffer in other.named_buffers():
                    self.assertEqual(tensors[name].tolist(), buffer.tolist(), name)

    def test_functional_call_of_computed_weights(self):
        utils = nn.utils
        for norm in (utils.weight_norm, utils.spectral_norm, utils.parametrizations.weight_norm, utils.parametrizations.spectral_norm):
            net, other = (nn.Sequential(norm(nn.Linear(3, 3)), nn.ReLU()).eval() for _ in range(2))
            x = torch.rand(2, 3)
            before = {name: value.clone() for name, value in net.state_dict().items()}
            given = {name: (value.detach() * 2).requires_grad_() for name, value in net.named_parameters()}
            y = torch.func.functional_call(net, given, x)
            y.sum().backward()
            other.load_state_dict({**before, **{name: value.detach() for name, value in given.items()}})
            self.assertTrue(torch.allclose(y, other(x)))
            self.assertTrue(all(value.grad is not None for value in given.values()))
            self.assertTrue(all(torch.equal(value, before[name]) for name, value in net.state_dict().items()))

    def test_names(self):
        for line in ("from tern.func import vmap, grad, functional_call", "import tern.func", "from tern import vmap",
                     "from tern.nn.utils.stateless import functional_call",
                     "import tern; tern.func.grad; tern.vmap; tern.nn.utils.prune; tern.nn.utils.parametrize; tern.nn.utils.stateless"):
            exec(line, {})


# The tutorials, without what draws and measures.
PER_SAMPLE = """
torch.manual_seed(0)

class SimpleCNN(nn.Module):
    def __init__(self):
        super(SimpleCNN, self).__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.conv1(x)
        x = F.relu(x)
        x = self.conv2(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        x = F.relu(x)
        x = self.fc2(x)
        output = F.log_softmax(x, dim=1)
        return output

def loss_fn(predictions, targets):
    return F.nll_loss(predictions, targets)

device = 'cpu'
num_models = 10
batch_size = 4
data = torch.randn(batch_size, 1, 28, 28, device=device)
targets = torch.randint(10, (batch_size,), device=device)
model = SimpleCNN().to(device=device)
predictions = model(data)  # move the entire mini-batch through the model
loss = loss_fn(predictions, targets)
loss.backward()  # back propagate the 'average' gradient of this mini-batch

def compute_grad(sample, target):
    sample = sample.unsqueeze(0)  # prepend batch dimension for processing
    target = target.unsqueeze(0)
    prediction = model(sample)
    loss = loss_fn(prediction, target)
    return torch.autograd.grad(loss, list(model.parameters()))

def compute_sample_grads(data, targets):
    sample_grads = [compute_grad(data[i], targets[i]) for i in range(batch_size)]
    sample_grads = zip(*sample_grads)
    sample_grads = [torch.stack(shards) for shards in sample_grads]
    return sample_grads

per_sample_grads = compute_sample_grads(data, targets)

from torch.func import functional_call, vmap, grad
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}

def compute_loss(params, buffers, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)
    predictions = functional_call(model, (params, buffers), (batch,))
    loss = loss_fn(predictions, targets)
    return loss

ft_compute_grad = grad(compute_loss)
ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
ft_per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
for per_sample_grad, ft_per_sample_grad in zip(per_sample_grads, ft_per_sample_grads.values()):
    assert torch.allclose(per_sample_grad, ft_per_sample_grad, atol=3e-3, rtol=1e-5)
    assert not ft_per_sample_grad.requires_grad

from torch.utils.benchmark import Timer
with_vmap = Timer(stmt="ft_compute_sample_grad(params, buffers, data, targets)", globals=globals())
with_vmap_timing = with_vmap.timeit(1)
print(f'Per-sample-grads with vmap {with_vmap_timing}')
assert with_vmap_timing.times[0] > 0
"""

ENSEMBLE = """
torch.manual_seed(0)

class SimpleMLP(nn.Module):
    def __init__(self):
        super(SimpleMLP, self).__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = x.flatten(1)
        x = self.fc1(x)
        x = F.relu(x)
        x = self.fc2(x)
        x = F.relu(x)
        x = self.fc3(x)
        return x

device = 'cpu'
num_models = 3
data = torch.randn(10, 6, 1, 28, 28, device=device)
targets = torch.randint(10, (60,), device=device)
models = [SimpleMLP().to(device) for _ in range(num_models)]
minibatches = data[:num_models]
predictions_diff_minibatch_loop = [model(minibatch) for model, minibatch in zip(models, minibatches)]
minibatch = data[0]
predictions2 = [model(minibatch) for model in models]

from torch.func import stack_module_state
params, buffers = stack_module_state(models)

from torch.func import functional_call
import copy
# Construct a "stateless" version of one of the models. It is "stateless" in
# the sense that the parameters are meta Tensors and do not have storage.
base_model = copy.deepcopy(models[0])
base_model = base_model.to('meta')

def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))

print([p.size(0) for p in params.values()])  # show the leading 'num_models' dimension
assert minibatches.shape == (num_models, 6, 1, 28, 28)  # verify minibatch has leading dimension of size 'num_models'

from torch import vmap
predictions1_vmap = vmap(fmodel)(params, buffers, minibatches)
# verify the ``vmap`` predictions match the
assert torch.allclose(predictions1_vmap, torch.stack(predictions_diff_minibatch_loop), atol=1e-3, rtol=1e-5)
predictions2_vmap = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, minibatch)
assert torch.allclose(predictions2_vmap, torch.stack(predictions2), atol=1e-3, rtol=1e-5)
predictions1_vmap.square().sum().backward()
assert params['fc1.weight'].grad.shape == (num_models, 128, 784)
"""

JACOBIANS = """
from functools import partial
_ = torch.manual_seed(0)

def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()

D = 6
weight = torch.randn(D, D)
bias = torch.randn(D)
x = torch.randn(D)  # feature vector

def compute_jac(xp):
    jacobian_rows = [torch.autograd.grad(predict(weight, bias, xp), xp, vec)[0] for vec in unit_vectors]
    return torch.stack(jacobian_rows)

xp = x.clone().requires_grad_()
unit_vectors = torch.eye(D)
jacobian = compute_jac(xp)

from torch.func import vmap, vjp
_, vjp_fn = vjp(partial(predict, weight, bias), x)
ft_jacobian, = vmap(vjp_fn)(unit_vectors)
assert torch.allclose(ft_jacobian, jacobian)

from torch.func import jacrev
ft_jacobian = jacrev(predict, argnums=2)(weight, bias, x)
assert torch.allclose(ft_jacobian, jacobian)
ft_jac_weight, ft_jac_bias = jacrev(predict, argnums=(0, 1))(weight, bias, x)
assert ft_jac_weight.shape == (D, D, D)

from torch.func import jacrev, jacfwd
jacfwd_jacobian = jacfwd(predict, argnums=2)(weight, bias, x)
assert torch.allclose(jacfwd_jacobian, jacobian, atol=1e-6)

from torch.func import hessian
hess_api = hessian(predict, argnums=2)(weight, bias, x)
hess_fwdfwd = jacfwd(jacfwd(predict, argnums=2), argnums=2)(weight, bias, x)
hess_revrev = jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
assert torch.allclose(hess_api, hess_fwdfwd, atol=1e-6) and torch.allclose(hess_api, hess_revrev, atol=1e-6)

batch_size = 4
weight = torch.randn(D, D)
bias = torch.randn(D)
x = torch.randn(batch_size, D)
compute_batch_jacobian = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))
batch_jacobian0 = compute_batch_jacobian(weight, bias, x)

def predict_with_output_summed(weight, bias, x):
    return predict(weight, bias, x).sum(0)

batch_jacobian1 = jacrev(predict_with_output_summed, argnums=2)(weight, bias, x).movedim(1, 0)
assert torch.allclose(batch_jacobian0, batch_jacobian1, atol=1e-6)
compute_batch_hessian = vmap(hessian(predict, argnums=2), in_dims=(None, None, 0))
batch_hess = compute_batch_hessian(weight, bias, x)
assert batch_hess.shape == (batch_size, D, D, D)

from torch.func import jvp, grad, vjp

def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]

def f(x):
    return x.sin().sum()

x = torch.randn(20)
tangent = torch.randn(20)
result = hvp(f, (x,), (tangent,))
assert torch.allclose(result, -x.sin() * tangent, atol=1e-6)
"""


class Tutorials(unittest.TestCase):
    def run_tutorial(self, text):
        text = "import tern as torch\nfrom tern import nn\nimport tern.nn.functional as F\n" + text.replace("from torch", "from tern")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(text, {"__name__": "tutorial"})

    def test_per_sample_gradients(self):
        self.run_tutorial(PER_SAMPLE)

    def test_ensembles(self):
        self.run_tutorial(ENSEMBLE)

    def test_jacobians_and_hessians(self):
        self.run_tutorial(JACOBIANS)


if __name__ == "__main__":
    unittest.main()
