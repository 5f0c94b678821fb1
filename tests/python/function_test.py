# autograd.Function and utils.checkpoint in Python, beside PyTorch.
import unittest

import torch

import tern


def straight_through(t):
    """A sign whose gradient is that of clamp, with a saved tensor, a number, and two results."""

    class Sign(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, most):
            ctx.save_for_backward(x)
            ctx.most = most
            return t.sign(x), x * most

        @staticmethod
        def backward(ctx, grad, grad_scaled):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() <= ctx.most) + grad_scaled * ctx.most, None

    return Sign


class FunctionTest(unittest.TestCase):
    def test_gradients_are_pytorchs(self):
        results = []
        for t in (torch, tern):
            x = t.tensor([-2.0, -0.5, 0.25, 3.0], requires_grad=True)
            y, z = straight_through(t).apply(x, 1.5)
            ((y * 3).sum() + (z * z).sum()).backward()
            results.append((y.tolist(), x.grad.tolist()))
        self.assertEqual(*results)

    def test_says_how_many_gradients(self):
        class Two(tern.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                self.assertEqual(ctx.needs_input_grad, (True, False))
                return a + b

            @staticmethod
            def backward(ctx, grad):
                return grad

        a = tern.ones(2, requires_grad=True)
        with self.assertRaisesRegex(tern.AutogradError, "1 gradients for 2 arguments"):
            Two.apply(a, tern.ones(2)).sum().backward()

    def test_exceptions_leave_as_they_are(self):
        class Failing(tern.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            Failing.apply(tern.ones(1, requires_grad=True)).backward()

    def test_second_derivatives(self):
        class Cube(tern.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3

            @staticmethod
            def backward(ctx, grad):
                return grad * 3 * ctx.saved_tensors[0] ** 2

        x = tern.tensor(2.0, requires_grad=True)
        (first,) = tern.autograd.grad(Cube.apply(x), x, create_graph=True)
        (second,) = tern.autograd.grad(first, x)
        self.assertEqual((first.item(), second.item()), (12.0, 12.0))


class CheckpointTest(unittest.TestCase):
    def test_same_gradients_and_called_again(self):
        calls = []
        net = tern.nn.Sequential(tern.nn.Linear(3, 4), tern.nn.Dropout(0.5), tern.nn.Tanh(), tern.nn.Linear(4, 1))

        def run(x):
            calls.append(1)
            return net(x)

        x = tern.ones(2, 3, requires_grad=True)
        grads = []
        for way in (run, lambda x: tern.utils.checkpoint.checkpoint(run, x, use_reentrant=False)):
            tern.manual_seed(3)
            net.zero_grad()
            way(x).sum().backward()
            grads.append([p.grad.tolist() for p in net.parameters()])
        self.assertEqual(*grads)
        self.assertEqual(len(calls), 3)

    def test_sequential(self):
        net = tern.nn.Sequential(*(tern.nn.Linear(3, 3) for _ in range(5)))
        x = tern.ones(1, 3, requires_grad=True)
        self.assertEqual(tern.utils.checkpoint.checkpoint_sequential(net, 2, x).tolist(), net(x).tolist())
        with self.assertRaisesRegex(ValueError, "6 parts of 5 modules"):
            tern.utils.checkpoint.checkpoint_sequential(net, 6, x)


if __name__ == "__main__":
    unittest.main()
