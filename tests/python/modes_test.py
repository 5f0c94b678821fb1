"""Autocast, inference mode and the compiler: what programs ask of them, and functions of one's own under them."""

import unittest

import tern as torch


class Autocast(unittest.TestCase):
    def test_questions(self):
        self.assertFalse(torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled())
        mode = torch.autocast("cpu", torch.float16)
        with mode, mode:
            self.assertTrue(torch.is_autocast_enabled("cpu") and torch.is_autocast_cpu_enabled())
            self.assertEqual((torch.get_autocast_dtype("cpu"), torch.get_autocast_cpu_dtype()), (torch.float16, torch.float16))
        self.assertFalse(torch.is_autocast_cpu_enabled())
        self.assertEqual((torch.get_autocast_gpu_dtype(), torch.get_autocast_cpu_dtype()), (torch.float16, torch.bfloat16))
        with torch.autocast("cpu", cache_enabled=False):
            self.assertFalse(torch.is_autocast_cache_enabled())
        self.assertTrue(torch.is_autocast_cache_enabled() and torch.amp.is_autocast_available("cpu"))

    def test_functions_of_ones_own(self):
        seen = []

        def product(cast_inputs):
            class Product(torch.autograd.Function):
                @staticmethod
                @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
                def forward(ctx, a, b):
                    ctx.save_for_backward(a, b)
                    seen.append((a.dtype, torch.is_autocast_enabled("cpu")))
                    return a @ b

                @staticmethod
                @torch.amp.custom_bwd(device_type="cpu")
                def backward(ctx, g):
                    a, b = ctx.saved_tensors
                    seen.append((g.dtype, torch.is_autocast_enabled("cpu")))
                    return g @ b.t(), a.t() @ g

            return Product.apply

        for cast_inputs, expected in ((None, [(torch.float32, True), (torch.bfloat16, True)]),
                                      (torch.float32, [(torch.float32, False), (torch.float32, False)])):
            seen.clear()
            a, b = torch.ones(2, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
            with torch.autocast("cpu"):
                y = product(cast_inputs)(a, b)
            y.sum().backward()
            self.assertEqual(seen, expected)
            self.assertEqual(a.grad.tolist(), [[2.0] * 3] * 2)

    def test_compiler(self):
        self.assertFalse(torch.compiler.is_compiling())
        self.assertEqual(torch.compiler.disable(lambda: 3)(), 3)
        self.assertEqual(torch.compiler.disable(recursive=False)(lambda: 3)(), 3)
        self.assertEqual(torch.jit.annotate(int, 3), 3)

    def test_inference_mode(self):
        with torch.inference_mode():
            self.assertFalse(torch.is_grad_enabled())
            with torch.inference_mode(False):
                self.assertTrue(torch.is_grad_enabled())

        @torch.inference_mode(mode=True)
        def decorated():
            return torch.is_grad_enabled()

        @torch.inference_mode
        def plainly_decorated():
            return torch.is_grad_enabled()

        self.assertFalse(decorated() or plainly_decorated())


if __name__ == "__main__":
    unittest.main()
