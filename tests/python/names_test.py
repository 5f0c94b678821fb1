"""Names that programs import from PyTorch and that stand elsewhere in Tern, names of earlier years, and what is asked of classes."""

import collections
import copy
import inspect
import pickle
import tempfile
import unittest
import warnings

import tern
import tern as torch
from tern import nn
from tern.nn import functional as F

IMPORTS = """
from tern.nn.parameter import Parameter
from tern.nn.modules import Module, Linear
from tern.nn.modules.activation import ReLU
from tern.nn.modules.batchnorm import _BatchNorm
from tern.nn.modules.conv import _ConvNd
from tern.nn.modules.utils import _pair, _single
from tern.nn.parallel.data_parallel import DataParallel
from tern.nn.utils.clip_grad import clip_grad_norm_
from tern.nn.attention import SDPBackend, sdpa_kernel
from tern.utils.data.dataloader import DataLoader, default_collate
from tern.utils.data._utils.collate import default_collate
from tern.utils._pytree import tree_map, tree_flatten, tree_unflatten
from tern.cuda.amp import GradScaler, autocast
from tern.autograd.variable import Variable
from tern.optim.adam import Adam
from tern.optim.optimizer import Optimizer
from tern.optim.lr_scheduler import LambdaLR
from tern.distributions.categorical import Categorical
from tern.testing import assert_close
import tern.backends.cudnn as cudnn; cudnn.benchmark = True
import tern.onnx, tern.jit, tern.hub, tern.version, tern.random, tern.special
from tern.profiler import schedule, tensorboard_trace_handler
from tern.nn.init import _calculate_fan_in_and_fan_out as fans; import tern; assert fans(tern.ones(2, 3, 5, 5)) == (75, 50)
from tern.jit import Final, script_if_tracing; from tern.jit.annotations import List, Optional
from tern.hub import HASH_REGEX, get_dir, load_state_dict_from_url, urlparse; assert HASH_REGEX.search("net-0676ba61.pth").group(1) == "0676ba61"
from tern.fx import wrap; assert wrap(len) is len
"""

# Calls of earlier years, and what they give today.
SAME = [
    ("torch.FloatTensor(2, 3).shape", "(2, 3)"), ("torch.FloatTensor([1, 2]).tolist()", "[1.0, 2.0]"), ("torch.FloatTensor().shape", "(0,)"),
    ("torch.LongTensor(5).shape", "(5,)"), ("torch.LongTensor((1, 2)).tolist()", "[1, 2]"), ("torch.ByteTensor(2).dtype", "torch.uint8"),
    ("torch.IntTensor(torch.Size([2, 1])).shape", "(2, 1)"), ("torch.BoolTensor([0, 2]).tolist()", "[False, True]"),
    ("torch.Tensor().shape", "(0,)"), ("torch.Tensor((1., 2.)).tolist()", "[1.0, 2.0]"), ("torch.Tensor(range(3)).tolist()", "[0.0, 1.0, 2.0]"),
    ("torch.tensor(range(3)).tolist()", "[0, 1, 2]"), ("torch.tensor(collections.deque([1, 2])).tolist()", "[1, 2]"),
    ("torch.ones(2, dtype=torch.int64).type(torch.Tensor).dtype", "torch.float32"), ("x.new(3, 4).shape", "(3, 4)"), ("x.new([1, 2]).tolist()", "[1.0, 2.0]"),
    ("isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(3, torch.FloatTensor)", "(True, False, False)"),
    ("isinstance(x, torch.cuda.FloatTensor), x.is_xpu, x.is_sparse", "(False, False, False)"),
    ("nn.MSELoss(size_average=False)(x, x + 1).item()", "x.numel()"), ("nn.L1Loss(reduce=False)(x, x + 1).shape", "x.shape"),
    ("F.mse_loss(x, x + 1, size_average=False).item()", "x.numel()"), ("F.binary_cross_entropy(x * 0, x * 0, reduce=False).shape", "x.shape"),
    ("nn.Softmax()(x).sum(1).tolist()", "F.softmax(x, 1).sum(1).tolist()"), ("F.log_softmax(x).tolist()", "F.log_softmax(x, 1).tolist()"),
    ("F.softmax(x[0]).tolist()", "F.softmax(x[0], 0).tolist()"), ("F.softmin(x[None]).tolist()", "F.softmin(x[None], 0).tolist()"), ("str(nn.Softmax())", "'Softmax(dim=None)'"),
    ("nn.init.constant(torch.empty(2), 3).tolist()", "[3.0, 3.0]"), ("torch.autograd.grad(w * 2, w, only_inputs=True)[0].item()", "2.0"),
    ("isinstance(nn.BatchNorm2d(1), nn.modules.batchnorm._BatchNorm), isinstance(nn.Conv1d(1, 1, 1), nn.modules.conv._ConvNd)", "(True, True)"),
    ("isinstance(nn.Linear(1, 1), nn.modules.conv._ConvNd), nn.modules.utils._pair(3)", "(False, (3, 3))"),
    ("1 << torch.tensor([1, 2])", "torch.tensor([2, 4])"), ("torch.tensor([8]) >> 2", "torch.tensor([2])"),
    ("torch.special.expit(x)", "torch.sigmoid(x)"), ("torch.special.gammaln(x)", "torch.lgamma(x)"), ("x.lgamma().digamma()", "torch.digamma(torch.lgamma(x))"),
    ("torch.distributed.get_default_backend_for_device('cpu')", "'gloo'"), ("torch.jit.script(F.relu) is F.relu", "True"),
    ("[name for name, _ in nn.GRU(2, 3, 2).named_parameters()]", "nn.GRU(2, 3, 2)._flat_weights_names"),
    ("[len(nn.utils.rnn.pack_sequence([x[0], x[1]])), nn.utils.rnn.pack_sequence([x[0], x[1]])[0].shape, [*nn.utils.rnn.pack_sequence([x[0]])][1].tolist()]", "[4, (6,), [1, 1, 1]]"),
    ("torch.Generator().device.type", "'cpu'"), ("len({torch.Generator().seed() for _ in range(3)})", "3"), ("nn.Linear(1, 1).compile()", "None"),
]


class Names(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)

    def test_imports(self):
        for line in IMPORTS.strip().splitlines():
            with self.subTest(line):
                exec(line, {})

    def test_calls_of_earlier_years(self):
        place = {"torch": tern, "nn": nn, "F": F, "collections": collections, "x": tern.arange(1.0, 7.0).reshape(2, 3),
                 "w": tern.ones((), requires_grad=True)}
        for text, expected in SAME:
            with self.subTest(text):
                found, wanted = eval(text, place), eval(expected, place)
                if isinstance(wanted, tern.Tensor):
                    self.assertTrue(tern.equal(found, wanted), found)
                else:
                    self.assertEqual(found, wanted)

    def test_warnings(self):
        for text, words in (("F.softmax(torch.ones(2, 2))", "Implicit dimension choice for softmax"), ("nn.MSELoss(size_average=True)", "reduction='mean'"),
                            ("nn.LazyLinear(2).weight.data.normal_(0, 1)", "has no effect"), ("nn.init.normal(torch.ones(2))", "nn.init.normal_")):
            with self.assertWarnsRegex((UserWarning, FutureWarning), words):
                eval(text, {"F": F, "torch": tern, "nn": nn})

    def test_signatures(self):
        class Mine(nn.Linear):
            def __init__(self, width, depth=2):
                super().__init__(width, width)

        self.assertEqual(list(inspect.signature(nn.Linear).parameters), ["in_features", "out_features", "bias", "device", "dtype"])
        self.assertIn("fused", inspect.signature(tern.optim.AdamW).parameters)
        self.assertEqual(inspect.signature(nn.Dropout).parameters["p"].default, 0.5)
        self.assertEqual(inspect.signature(tern.optim.Adam).parameters["betas"].default, (0.9, 0.999))
        self.assertEqual(list(inspect.signature(Mine).parameters), ["width", "depth"])

    def test_what_is_not_there_says_so(self):
        for text, words in (("torch.onnx.export(net, None, 'x.onnx')", "writes no ONNX"), ("torch.jit.load('x.pt')", "does not run TorchScript"),
                            ("torch.jit.save(net, 'x.pt')", "writes no TorchScript"), ("torch.hub.load('pytorch/vision', 'resnet18')", "not fetched"),
                            ("torch.hub.load_state_dict_from_url('https://a.b/c.pth', '/nowhere')", "fetch https://a.b/c.pth as /nowhere/c.pth"),
                            ("torch.fx.symbolic_trace(net)", "does not trace")):
            with self.assertRaisesRegex(NotImplementedError, words):
                eval(text, {"torch": tern, "net": nn.Linear(1, 1)})

    def test_safe_globals(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/net.pt"
            torch.save(nn.Sequential(nn.Linear(2, 1)), path)
            with self.assertRaises(tern.CheckpointError):
                torch.load(path)
            with torch.serialization.safe_globals([nn.Sequential, nn.Linear]):
                self.assertEqual(torch.load(path)[0].in_features, 2)
            with self.assertRaises(tern.CheckpointError):
                torch.load(path)

    def test_sets_of_pictures_are_pickled_and_copied(self):
        digits = tern.datasets.Digits(size=20, seed=3, transform=tern.transforms.ToTensor())
        digits.note = "kept"
        for other in (pickle.loads(pickle.dumps(digits)), copy.deepcopy(digits), copy.copy(digits)):
            self.assertEqual((len(other), other.note), (20, "kept"))
            self.assertTrue(tern.equal(other[7][0], digits[7][0]))

    def test_a_module_in_the_place_of_a_layers_own(self):
        class Words(nn.Transformer):
            def __init__(self):
                super().__init__(d_model=8, nhead=2, num_encoder_layers=1, dim_feedforward=16)
                self.decoder = nn.Linear(8, 5)

            def forward(self, x):
                return self.decoder(self.encoder(x))

        net = Words()
        self.assertEqual(net(tern.ones(3, 2, 8)).shape, (3, 2, 5))
        names = list(net.state_dict())
        self.assertIn("decoder.weight", names)
        self.assertFalse([name for name in names if name.startswith("decoder.layers")])
        self.assertEqual([name for name, _ in net.named_children()], ["encoder", "decoder"])
        self.assertIn("(decoder): Linear(in_features=8, out_features=5, bias=True)", str(net))
        self.assertEqual(copy.deepcopy(net)(tern.ones(3, 2, 8)).shape, (3, 2, 5))
        plain = nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
        with self.assertRaisesRegex(TypeError, "derive a class with a forward"):
            plain.decoder = nn.Identity()
        with self.assertRaisesRegex(TypeError, "expected"):
            plain.decoder = 3

    def test_trees(self):
        from tern.utils import _pytree as pytree
        Point = collections.namedtuple("Point", "x y")
        tree = {"a": [1, (2, 3)], "b": Point(4, {"c": 5}), "d": []}
        leaves, spec = pytree.tree_flatten(tree)
        self.assertEqual((leaves, spec.num_leaves), ([1, 2, 3, 4, 5], 5))
        self.assertEqual(pytree.tree_unflatten(leaves, spec), tree)
        self.assertEqual(pytree.tree_map(lambda x, y: x + y, tree, tree)["b"], Point(8, {"c": 10}))
        self.assertEqual(pytree.tree_map_only(int, str, ["1", 2]), ["1", "2"])
        self.assertTrue(pytree.tree_all(lambda x: x > 0, tree))
        with self.assertRaisesRegex(ValueError, "5 leaves, 1"):
            pytree.tree_unflatten([1], spec)

    def test_assert_close(self):
        a = tern.tensor([1.0, 2.0])
        tern.testing.assert_close({"x": [a, 3]}, {"x": [a + 1e-6, 3]})
        for actual, expected, words in ((a, a + 1, "not close.*Mismatched elements: 2 / 2"), (a, a.double(), "'dtype'"), (a, a[:1], "'shape'"),
                                        ({"x": a}, {"y": a}, "keys"), ([a], [a, a], "lengths")):
            with self.assertRaisesRegex(AssertionError, f"(?s){words}"):
                tern.testing.assert_close(actual, expected)

    def test_schedule_of_a_profile(self):
        seen = []
        plan = tern.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
        with tern.profiler.profile(schedule=plan, on_trace_ready=lambda p: seen.append({event.name for event in p.events()})) as profile:
            for step in range(10):
                tern.relu(tern.ones(3)) if step % 4 >= 2 else tern.exp(tern.ones(3))
                profile.step()
        self.assertEqual([("relu" in names, "exp" in names) for names in seen], [(True, False)] * 2)

    def test_fork_rng(self):
        tern.manual_seed(1)
        with tern.random.fork_rng():
            tern.rand(5)
        after = tern.rand(3)
        tern.manual_seed(1)
        self.assertTrue(tern.equal(after, tern.rand(3)))

    def test_sampling_with_replacement_needs_little_memory(self):
        sampler = tern.utils.data.RandomSampler(range(10), replacement=True, num_samples=10**12)
        self.assertTrue(all(0 <= place < 10 for place, _ in zip(sampler, range(2000))))


if __name__ == "__main__":
    unittest.main()
