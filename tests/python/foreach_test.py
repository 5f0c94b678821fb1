"""torch._foreach_*: operators on each tensor of a list, compared with PyTorch's."""

import unittest

import torch as pytorch

import tern as torch

UNARY = "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round sigmoid sin sinh sqrt tan tanh trunc"
CALLS = [(name, ()) for name in UNARY.split()] + [
    ("add", (2.0,)), ("add", ([1.0, 2.0],)), ("add", ("others",)), ("sub", ("others",)), ("mul", ("others",)), ("mul", (3.0,)), ("div", ("others",)),
    ("addcmul", ("others", "others", 0.5)), ("addcdiv", ("others", "others", [0.5, 2.0])), ("maximum", ("others",)), ("minimum", ("others",)),
]


class Foreach(unittest.TestCase):
    def test_as_pytorch(self):
        numbers = {"tensors": [[0.1, 0.5, 0.9], [[0.3]]], "others": [[0.4, 0.2, 0.8], [[0.6]]]}

        def run(package, name, arguments):
            tensors, others = ([package.tensor(one, dtype=package.float64) for one in numbers[which]] for which in ("tensors", "others"))
            given = [others if one == "others" else one for one in arguments]
            fresh = getattr(package, f"_foreach_{name}")(tensors, *given)
            changed = getattr(package, f"_foreach_{name}_")(tensors, *given) if hasattr(package, f"_foreach_{name}_") else None
            return changed, [x.tolist() for x in fresh], [x.tolist() for x in tensors]

        for name, arguments in CALLS:
            with self.subTest(name, arguments=arguments):
                ours, theirs = run(torch, name, arguments), run(pytorch, name, arguments)
                self.assertIsNone(ours[0])
                for mine, right in zip(ours[1], theirs[1]):
                    torch.testing.assert_close(torch.tensor(mine), torch.tensor(right))
                self.assertEqual(ours[1], ours[2])

    def test_the_others(self):
        a, b = [torch.tensor([3.0, 4.0]), torch.tensor([-1.0])], [torch.zeros(2), torch.zeros(1)]
        torch._foreach_copy_(b, a)
        self.assertEqual([x.tolist() for x in b], [[3, 4], [-1]])
        self.assertEqual([x.item() for x in torch._foreach_norm(a)], [5, 1])
        self.assertEqual([x.tolist() for x in torch._foreach_clamp_min(a, 0.0)], [[3, 4], [0]])
        self.assertEqual([x.tolist() for x in torch._foreach_lerp(a, b, 0.5)], [[3, 4], [-1]])
        self.assertEqual([x.tolist() for x in torch._foreach_pow(a, 2)], [[9, 16], [1]])
        torch._foreach_zero_(b)
        self.assertEqual([x.tolist() for x in b], [[0, 0], [0]])

    def test_errors(self):
        for arguments, words in ((([],), "not empty"), (([torch.ones(1)] * 2, [torch.ones(1)]), "2 tensors, but 1 values")):
            with self.assertRaisesRegex(ValueError, words):
                torch._foreach_add_(*arguments)


if __name__ == "__main__":
    unittest.main()
