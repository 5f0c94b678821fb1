"""The tutorials: what d2l.ai and PyTorch's own pages write, with `import tern as torch`, on two GPUs, simulated ones where
there are no others."""

import io
import os
import tempfile
import unittest

import tern as torch

if not torch.cuda.is_available():
    torch.cuda.simulate_gpus(2)

from tern import nn  # noqa: E402
from tern.nn import functional as F  # noqa: E402
from tern import transforms  # noqa: E402
from tern.datasets import Digits  # noqa: E402
from tern.utils.data import DataLoader, Dataset  # noqa: E402


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.LazyLinear(256)
        self.output = nn.LazyLinear(10)

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2, stride=2), nn.Conv2d(6, 16, 5),
                         nn.ReLU(), nn.AvgPool2d(2, stride=2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
                         nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class Builders(unittest.TestCase):
    """d2l.ai, chapter 6."""

    def test_file_io(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            x, y = torch.arange(4), torch.zeros(4)
            torch.save({"x": x, "list": [x, y]}, path)
            loaded = torch.load(path)
            self.assertTrue(torch.equal(loaded["x"], x) and torch.equal(loaded["list"][1], y))
            net, X = MLP(), torch.randn(size=(2, 20))
            Y = net(X)
            torch.save(net.state_dict(), path)
            clone = MLP()
            clone.load_state_dict(torch.load(path))
            clone.eval()
            self.assertTrue((clone(X) == Y).all())

    def test_parameters(self):
        shared = nn.LazyLinear(8)
        net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), shared, nn.ReLU(), shared, nn.ReLU(), nn.LazyLinear(1))
        net(torch.rand(size=(2, 4)))
        net[2].weight.data[0, 0] = 100
        self.assertTrue((net[2].weight.data[0] == net[4].weight.data[0]).all())
        self.assertIsNone(net[2].weight.grad)

        def init_constant(module):
            if type(module) == nn.Linear:
                nn.init.constant_(module.weight, 1)
                nn.init.zeros_(module.bias)

        net.apply(init_constant)
        self.assertEqual((net[0].weight.data[0].tolist(), net[0].bias.data[0].item()), ([1] * 4, 0))
        net[0].weight.data[:] += 1
        self.assertEqual(net[0].weight[0, 0].item(), 2)

    def test_custom_layers(self):
        class Centered(nn.Module):
            def forward(self, X):
                return X - X.mean()

        class MyLinear(nn.Module):
            def __init__(self, in_units, units):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(in_units, units))
                self.bias = nn.Parameter(torch.randn(units,))

            def forward(self, X):
                return F.relu(torch.matmul(X, self.weight.data) + self.bias.data)

        self.assertEqual(Centered()(torch.tensor([1.0, 2, 3, 4, 5])).tolist(), [-2, -1, 0, 1, 2])
        self.assertEqual(nn.Sequential(MyLinear(64, 8), MyLinear(8, 1))(torch.rand(2, 64)).shape, (2, 1))

    def test_gpus(self):
        X = torch.ones(2, 3, device=torch.device("cuda"))
        Z = X.cuda(1)
        self.assertIs(Z.cuda(1), Z)
        self.assertEqual((Z + Z).device, torch.device("cuda:1"))
        self.assertRaises(RuntimeError, lambda: X + Z)
        net = nn.Sequential(nn.LazyLinear(1)).to(device="cuda:0")
        self.assertEqual((net(X).shape, net[0].weight.data.device), ((2, 1), torch.device("cuda:0")))


class ManyGpus(unittest.TestCase):
    def test_by_hand(self):
        def allreduce(data):
            for i in range(1, len(data)):
                data[0][:] += data[i].to(data[0].device)
            for i in range(1, len(data)):
                data[i][:] = data[0].to(data[i].device)

        data = [torch.ones((1, 2), device=f"cuda:{i}") * (i + 1) for i in range(2)]
        allreduce(data)
        self.assertEqual([x.tolist() for x in data], [[[3, 3]]] * 2)
        a, b = nn.parallel.scatter(torch.arange(20).reshape(4, 5), [torch.device("cuda:0"), torch.device("cuda:1")])
        self.assertEqual((b.tolist()[0], b.device.index), ([10, 11, 12, 13, 14], 1))
        params = [torch.ones(5, 1, device=f"cuda:{i}", requires_grad=True) for i in range(2)]
        for X, w in zip((a, b), params):
            (X.float() @ w).sum().backward()
        with torch.no_grad():
            allreduce([w.grad for w in params])
            for w in params:
                w -= 0.1 * w.grad
        self.assertTrue(torch.allclose(params[0].cpu(), params[1].cpu()))
        self.assertEqual(params[1].grad[0].item(), 30)

    def test_data_parallel(self):
        sizes = []

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(5, 2)

            def forward(self, inputs):
                sizes.append(tuple(inputs["x"].shape))
                return {"y": self.fc(inputs["x"])}

        alone = nn.DataParallel(Model(), device_ids=[1])  # a single GPU takes the module
        self.assertEqual(alone({"x": torch.randn(3, 5)})["y"].device, torch.device("cuda:1"))
        sizes.clear()
        model = nn.DataParallel(Model()).to("cuda:0")
        for batch in DataLoader(torch.randn(40, 5), batch_size=30):
            self.assertEqual(model({"x": batch.to("cuda:0")})["y"].shape, (len(batch), 2))
        self.assertEqual(sizes, [(15, 5)] * 2 + [(5, 5)] * 2)
        model({"x": torch.ones(4, 5).cuda()})["y"].sum().backward()
        self.assertEqual(model.module.fc.bias.grad.tolist(), [4, 4])
        single = Model()
        single.load_state_dict({name[len("module."):]: tensor for name, tensor in model.state_dict().items()})
        self.assertEqual(single.fc.weight.tolist(), model.module.fc.weight.tolist())

    def test_parts_of_data_parallel(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda()
        outputs = nn.parallel.parallel_apply(nn.parallel.replicate(net, [0, 1]),
                                             [(x,) for x in nn.parallel.scatter(torch.rand(4, 2).cuda(), [0, 1])])
        y = nn.parallel.gather(outputs, 0)
        y.square().sum().backward()
        self.assertEqual((y.shape, net[0].weight.grad.shape), ((4, 2), (2, 2)))
        self.assertEqual(nn.parallel.comm.reduce_add([x.detach() * 0 + 1 for x in outputs]).tolist(), [[2, 2]] * 2)

    def test_two_gpus_in_one_model(self):
        class Parts(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 2).to("cuda:1")

            def forward(self, x):
                return self.b(F.relu(self.a(x.to("cuda:0"))).to("cuda:1"))

        net = Parts()
        net(torch.ones(3, 4)).sum().backward()
        self.assertEqual((net.a.weight.grad.device.index, net.b.weight.grad.device.index), (0, 1))


class SavingAndLoading(unittest.TestCase):
    def test_checkpoint_goes_on(self):
        def step(model, optimizer):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        step(model, optimizer)
        file = io.BytesIO()
        torch.save({"epoch": 5, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": 0.25}, file)
        file.seek(0)
        checkpoint = torch.load(file, weights_only=True)
        again = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        other = torch.optim.SGD(again.parameters(), lr=1)
        again.load_state_dict(checkpoint["model"])
        other.load_state_dict(checkpoint["optimizer"])
        for _ in range(3):
            step(model, optimizer)
            step(again, other)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters())))
        self.assertEqual((checkpoint["epoch"], checkpoint["loss"]), (5, 0.25))

    def test_across_devices(self):
        file = io.BytesIO()
        torch.save(nn.Linear(2, 2).to("cuda:1").state_dict(), file)
        for place, expected in ((None, "cuda:1"), ("cpu", "cpu"), (torch.device("cuda:0"), "cuda:0"),
                                ({"cuda:1": "cuda:0"}, "cuda:0"), (lambda storage, location: storage, "cpu"),
                                (lambda storage, location: storage.cuda(0), "cuda:0")):
            file.seek(0)
            self.assertEqual(str(torch.load(file, map_location=place)["weight"].device), expected)

    def test_warm_start(self):
        first, second = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
        missing, unexpected = second.load_state_dict(first.state_dict(), strict=False)
        self.assertEqual((missing, unexpected), (["1.weight", "1.bias"], []))
        with self.assertRaisesRegex(RuntimeError, "Missing key"):
            second.load_state_dict(first.state_dict())
        with self.assertRaisesRegex(RuntimeError, "size mismatch for weight"):
            nn.Linear(3, 3).load_state_dict(nn.Linear(2, 3).state_dict(), strict=False)


class Training(unittest.TestCase):
    def test_quickstart(self):
        class Points(Dataset):
            def __init__(self, target_transform=None):
                self.x, self.target_transform = torch.arange(64 * 16).reshape(64, 4, 4) % 7 / 7, target_transform

            def __len__(self):
                return 64

            def __getitem__(self, index):
                y = index % 3
                return self.x[index], self.target_transform(y) if self.target_transform else y

        one_hot = Points(lambda y: torch.zeros(3).scatter_(0, torch.tensor([y]), value=1))
        self.assertEqual(one_hot[4][1].tolist(), [0, 1, 0])
        X, y = next(iter(DataLoader(Points(), batch_size=32, shuffle=True)))
        self.assertEqual((X.shape, y.dtype), ((32, 4, 4), torch.int64))
        self.assertEqual(torch.accelerator.current_accelerator().type, "cuda")

    def test_lenet(self):
        torch.manual_seed(0)
        net = lenet()
        net.apply(lambda m: nn.init.xavier_uniform_(m.weight) if type(m) in (nn.Linear, nn.Conv2d) else None)
        net.to("cuda:0")
        optimizer, loss_fn = torch.optim.Adam(net.parameters(), lr=0.003), nn.CrossEntropyLoss()
        net.train()
        loader = DataLoader(Digits(size=512, transform=transforms.ToTensor()), 64, shuffle=True)
        for _ in range(6):
            for X, y in loader:
                optimizer.zero_grad()
                loss = loss_fn(net(X.to("cuda:0")), y.to("cuda:0"))
                loss.backward()
                optimizer.step()
        net.eval()
        images, labels = next(iter(DataLoader(Digits(train=False, size=256, transform=transforms.ToTensor()), 256)))
        with torch.no_grad():
            self.assertGreater((net(images.cuda()).argmax(1) == labels.cuda()).float().mean().item(), 0.8)

    def test_lstm_tagger(self):
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.embeddings, self.lstm, self.tags = nn.Embedding(9, 6), nn.LSTM(6, 6), nn.Linear(6, 3)

            def forward(self, sentence):
                out, _ = self.lstm(self.embeddings(sentence).view(len(sentence), 1, -1))
                return F.log_softmax(self.tags(out.view(len(sentence), -1)), dim=1)

        torch.manual_seed(1)
        data = [(torch.tensor([0, 1, 2, 0, 3]), torch.tensor([0, 1, 2, 0, 1])), (torch.tensor([4, 5, 6, 7]), torch.tensor([1, 2, 0, 1]))]
        model, loss_function = Tagger(), nn.NLLLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(200):
            for sentence, tags in data:
                model.zero_grad()
                loss_function(model(sentence), tags).backward()
                optimizer.step()
        with torch.no_grad():
            self.assertEqual(model(data[0][0]).argmax(1).tolist(), [0, 1, 2, 0, 1])

    def test_transformer_encoder(self):
        class Words(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(11, 16)
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0), 2)
                self.linear = nn.Linear(16, 11)
                self.linear.weight.data.uniform_(-0.1, 0.1)

            def forward(self, words):
                mask = nn.Transformer.generate_square_subsequent_mask(len(words))
                return self.linear(self.encoder(self.embedding(words), mask))

        torch.manual_seed(0)
        net, words = Words(), torch.arange(40) % 11
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(words[:-1].view(-1, 1)).view(-1, 11), words[1:])
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
        self.assertLess(loss.item(), 0.5)
        self.assertEqual(len(net.encoder.layers), 2)

    def test_mixed_precision(self):
        net = nn.Linear(2, 1).cuda()
        optimizer, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        before = net.weight.detach().clone()
        for _ in range(4):  # the first steps may be left out, until the scale fits
            optimizer.zero_grad()
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                output = net(torch.ones(4, 2).cuda())
                loss = F.mse_loss(output, torch.zeros(4, 1).cuda())
            self.assertEqual((output.dtype, loss.dtype), (torch.float16, torch.float32))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        self.assertFalse(torch.equal(before, net.weight))

    def test_autograd_by_hand(self):
        x = torch.linspace(-3.14159, 3.14159, 2000)
        a, b = (torch.full((), value, requires_grad=True) for value in (0.0, -1.0))
        for _ in range(50):
            loss = (a + b * x - x.sin()).pow(2).sum()
            loss.backward()
            with torch.no_grad():
                a -= 5e-6 * a.grad
                b -= 5e-6 * b.grad
                a.grad = None
                b.grad = None
        self.assertLess(loss.item(), 5000)
        inp = torch.eye(4, 5, requires_grad=True)
        out = (inp + 1).pow(2).t()
        out.backward(torch.ones_like(out), retain_graph=True)
        out.backward(torch.ones_like(out), retain_graph=True)
        self.assertEqual(inp.grad[0].tolist(), [8, 4, 4, 4, 4])

    def test_activations(self):
        kept = {}
        net = lenet()
        handle = net[0].register_forward_hook(lambda module, inputs, output: kept.update(conv=output.detach()))
        net(torch.rand(1, 1, 28, 28))
        handle.remove()
        self.assertEqual(kept["conv"].shape, (1, 6, 28, 28))


if __name__ == "__main__":
    unittest.main()
