"""tern.models: parameters, shapes and weights of all models; beside torchvision, where it is there, names, first numbers, outputs and
gradients, and whole models in files."""

import copy
import importlib
import os
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np
import tern
from tern import models, nn

try:
    import torch
    import torchvision
except ImportError:
    torchvision = None

NARROW_VIT = "models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5)"
NARROW_SWIN = "models.SwinTransformer([4, 4], 8, [2, 2], [2, 4], [3, 3], num_classes=5)"
NARROW_CONVNEXT = "models.ConvNeXt([models.convnext.CNBlockConfig(8, 16, 2), models.convnext.CNBlockConfig(16, None, 1)], num_classes=5)"
NARROW_DENSENET = "models.DenseNet(8, (2, 3), 16, num_classes=5)"

# Models of every family as Tern and torchvision build them, and the size of a picture. Without dropout, since both are trained.
SMALL = [
    ("models.alexnet(num_classes=5, dropout=0)", 64),
    ("models.VGG(models.vgg.make_layers([8, 'M', 512, 'M'], batch_norm=True), num_classes=5, dropout=0)", 16),
    ("models.ResNet(models.resnet.BasicBlock, [1, 2, 1, 1], 5, zero_init_residual=True)", 32),
    ("models.ResNet(models.resnet.Bottleneck, [1, 2, 2, 1], 5, groups=2, width_per_group=16, "
     "replace_stride_with_dilation=[False, True, True])", 48),
    ("models.squeezenet1_0(num_classes=5, dropout=0)", 48), ("models.squeezenet1_1(num_classes=5, dropout=0)", 48),
    (NARROW_DENSENET, 32), ("models.DenseNet(8, (2, 3), 16, num_classes=5, memory_efficient=True)", 32),
    ("models.googlenet(num_classes=5, dropout=0, dropout_aux=0, transform_input=True, init_weights=True)", 48),
    ("models.inception_v3(num_classes=5, dropout=0, transform_input=True, init_weights=True, aux_logits=False)", 80),
    ("models.mobilenet_v2(num_classes=5, dropout=0, width_mult=0.5)", 32),
    ("models.mobilenet_v3_small(num_classes=5, dropout=0, reduced_tail=True, dilated=True)", 32),
    ("models.mobilenet_v3_large(num_classes=5, dropout=0, width_mult=0.5)", 32),
    ("models.shufflenet_v2_x0_5(num_classes=5)", 32), ("models.mnasnet0_5(num_classes=5, dropout=0)", 32),
    ("models.efficientnet_b0(num_classes=5, dropout=0, stochastic_depth_prob=0)", 32),
    ("models.EfficientNet([models.efficientnet.FusedMBConvConfig(4, 3, 2, 8, 16, 2)], 0, 0, 5)", 32), (NARROW_CONVNEXT, 32),
    ("models.regnet_x_400mf(num_classes=5)", 32), ("models.regnet_y_400mf(num_classes=5)", 32), (NARROW_VIT, 32),
    ("models.VisionTransformer(32, 8, 1, 2, 16, 32, num_classes=5, representation_size=6, conv_stem_configs=["
     "models.vision_transformer.ConvStemConfig(8, 3, 4), models.vision_transformer.ConvStemConfig(8, 3, 2)])", 32),
    (NARROW_SWIN.replace("5)", "5, stochastic_depth_prob=0)"), 34),
    (NARROW_SWIN.replace("5)", "5, stochastic_depth_prob=0, block=models.swin_transformer.SwinTransformerBlockV2, "
                               "downsample_layer=models.swin_transformer.PatchMergingV2)"), 34),
]


class Counted(nn.Module):
    """Has the parameters of a layer, whose numbers are not drawn."""

    def __init__(self, shape, bias):
        super().__init__()
        self.weight = nn.Parameter(tern.empty(*shape))
        self.bias = nn.Parameter(tern.empty(shape[0])) if bias else None


class CountedConv2d(Counted):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True):
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        super().__init__((out_channels, in_channels // groups, *kernel), bias)
        self.kernel_size, self.out_channels = kernel, out_channels


class CountedLinear(Counted):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__((out_features, in_features), bias)


class CountedAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout, batch_first):
        super().__init__()
        self.in_proj_weight = nn.Parameter(tern.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(tern.empty(3 * embed_dim))
        self.out_proj = CountedLinear(embed_dim, embed_dim)


def counted(name, **options):
    """The model with its shapes, however large; it can not be called."""
    layers = {"Conv2d": CountedConv2d, "Linear": CountedLinear, "MultiheadAttention": CountedAttention}
    fills = ("zeros_", "normal_", "uniform_", "trunc_normal_", "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_")
    with mock.patch.multiple(nn, **layers), mock.patch.multiple(nn.init, **{fill: lambda *_, **options: None for fill in fills}):
        return getattr(models, name)(**options)


def shapes(net):
    return [(name, tuple(tensor.shape)) for name, tensor in net.state_dict().items()]


def build(text, package=models):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"models": package})


def build_narrow(text, package=models):
    """The same, with 16 features in place of 4096."""
    layers = nn if package is models else torch.nn

    class Linear(layers.Linear):
        def __init__(self, in_features, out_features, bias=True):
            super().__init__(*(16 if width == 4096 else width for width in (in_features, out_features)), bias)

    with mock.patch.object(layers, "Linear", Linear):
        return build(text, package)


def pictures(size, count=4):
    return np.random.default_rng(7).standard_normal((count, 3, size, size))


def array(tensor):
    return tensor.detach().cpu().numpy()


class ModelsTest(unittest.TestCase):
    def test_numbers_of_parameters(self):
        built = {"googlenet": {"aux_logits": False}, "vit_h_14": {"image_size": 518}}
        self.assertEqual(len(models.list_models()), 79)
        for name in models.list_models():
            with self.subTest(name):
                count = sum(parameter.numel() for parameter in counted(name, **built.get(name, {})).parameters())
                self.assertEqual(count, models.get_model_weights(name).DEFAULT.meta["num_params"])

    def test_shapes_of_outputs(self):
        for text, size in SMALL:
            with self.subTest(text), tern.no_grad():
                net = build_narrow(text).eval()
                self.assertEqual(net(tern.tensor(pictures(size, 2), dtype=tern.float32)).shape, (2, 5))

    def test_auxiliary_classifiers(self):
        x = tern.zeros(2, 3, 48, 48)
        net = models.googlenet(num_classes=3)
        out = net.train()(x)
        self.assertEqual((type(out).__name__, out._fields), ("GoogLeNetOutputs", ("logits", "aux_logits2", "aux_logits1")))
        self.assertEqual({each.shape for each in out}, {(2, 3)})
        self.assertEqual(net.eval()(x).shape, (2, 3))
        self.assertEqual(models.googlenet(num_classes=3, aux_logits=False).train()(x).shape, (2, 3))
        self.assertEqual(models.inception.InceptionOutputs._fields, ("logits", "aux_logits"))
        state = net.state_dict()
        self.assertIsNone(models.googlenet(weights=state, num_classes=3).aux1)
        self.assertIsNotNone(models.googlenet(weights=state, num_classes=3, aux_logits=True).aux2)

    def test_names(self):
        for path in ("resnet.ResNet", "resnet.BasicBlock", "resnet.Bottleneck", "resnet.ResNet18_Weights", "vgg.make_layers", "vgg.cfgs",
                     "mobilenet.MobileNetV2", "mobilenetv3.InvertedResidual", "densenet._DenseLayer", "inception.InceptionA",
                     "googlenet.GoogLeNetOutputs", "efficientnet.MBConv", "vision_transformer.interpolate_embeddings",
                     "swin_transformer.PatchMerging", "_utils.IntermediateLayerGetter", "_api.WeightsEnum"):
            module, _, name = path.partition(".")
            self.assertTrue(hasattr(importlib.import_module(f"tern.models.{module}"), name), path)
        self.assertEqual(models.list_models(include="resnet*", exclude=["*1*"]), ["resnet34", "resnet50"])
        self.assertEqual(models.list_models(module=models), models.list_models())
        self.assertIs(models.get_model_builder("ResNet18"), models.resnet18)
        self.assertEqual(models.get_model("squeezenet1_1", num_classes=3).num_classes, 3)
        self.assertIs(models.get_weight("ResNet50_Weights.DEFAULT"), models.ResNet50_Weights.IMAGENET1K_V2)
        self.assertIs(models.get_model_weights(models.vgg16), models.VGG16_Weights)
        self.assertEqual(repr(models.ViT_B_16_Weights.DEFAULT), "ViT_B_16_Weights.IMAGENET1K_V1")
        for call, error in ((lambda: models.get_model("resnet19"), "Unknown model resnet19"),
                            (lambda: models.get_weight("ResNet18"), "Invalid weight name"),
                            (lambda: models.get_weight("ResNet19_Weights.DEFAULT"), "ResNet19_Weights"),
                            (lambda: models.SqueezeNet("2"), "Unsupported SqueezeNet version 2"),
                            (lambda: models.resnext50_32x4d(groups=1), "'groups' expected value 32 but got 1"),
                            (lambda: models.resnet18(replace_stride_with_dilation=[True]), "3-element tuple"),
                            (lambda: models.vit_h_14(pretrained=True), "No weights available for model vit_h_14")):
            self.assertRaisesRegex(ValueError, error, call)
        self.assertRaises(NotImplementedError, models.resnet18, replace_stride_with_dilation=[False, True, True])
        self.assertRaises(TypeError, models.resnet18, classes=3)

    def test_weights(self):
        net = models.squeezenet1_1()
        name = models.SqueezeNet1_1_Weights.DEFAULT.url.rpartition("/")[2]
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"TERN_MODELS": folder, "HOME": folder}):
            with self.assertRaises(tern.DataError) as caught:
                models.squeezenet1_1(weights="DEFAULT")
            for part in (f"https://download.pytorch.org/models/{name}", f"{folder} (TERN_MODELS)", f"{folder}/.cache/torch/hub/checkpoints",
                         os.getcwd(), "SqueezeNet1_1_Weights.IMAGENET1K_V1"):
                self.assertIn(part, str(caught.exception))
            path = os.path.join(folder, name)
            tern.save(net.state_dict(), path)
            for how in ({"weights": path}, {"weights": net.state_dict()}, {"weights": "IMAGENET1K_V1"}, {"pretrained": True},
                        {"weights": models.SqueezeNet1_1_Weights.IMAGENET1K_V1}, {"weights": "SqueezeNet1_1_Weights.DEFAULT"}):
                with self.subTest(how=how):
                    loaded = models.squeezenet1_1(**how).state_dict()
                    self.assertTrue(all(tern.equal(loaded[key], tensor) for key, tensor in net.state_dict().items()))
            self.assertRaisesRegex(ValueError, "'num_classes' expected value 1000", models.squeezenet1_1, pretrained=True, num_classes=3)
            self.assertRaisesRegex(RuntimeError, "classifier.1.weight", models.squeezenet1_1, weights=path, num_classes=3)
            self.assertRaisesRegex(RuntimeError, "features.3", models.squeezenet1_0, weights=path)
        self.assertRaisesRegex(tern.DataError, "V9.*no file.*IMAGENET1K_V1", models.resnet18, weights="IMAGENET1K_V9")
        self.assertRaisesRegex(TypeError, "expected ResNet18_Weights", models.resnet18, weights=models.ResNet34_Weights.DEFAULT)

    def test_transforms_of_weights(self):
        weights = models.ResNet50_Weights.DEFAULT
        self.assertEqual((weights.transforms.keywords["resize_size"], weights.transforms.keywords["crop_size"]), (232, 224))
        picture = tern.full((3, 250, 300), 128, dtype=tern.uint8, device="cpu")
        ready = weights.transforms()(picture)
        self.assertEqual(ready.shape, (3, 224, 224))
        np.testing.assert_allclose(array(ready)[:, 0, 0], (128 / 255 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225], atol=1e-5)
        self.assertEqual(weights.transforms(crop_size=32, resize_size=40)(picture).shape, (3, 32, 32))

    def test_names_of_earlier_files(self):
        net = build(NARROW_DENSENET)
        old = {name.replace(".norm1.", ".norm.1.").replace(".conv2.", ".conv.2.") if "denselayer" in name else name: tensor
               for name, tensor in net.state_dict().items()}
        self.assertIn("features.denseblock1.denselayer1.norm.1.weight", old)
        models.densenet._loaded(lambda: build(NARROW_DENSENET), old, None, {})
        net = build(NARROW_VIT)
        old = {name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2"): tensor
               for name, tensor in net.state_dict().items()}
        self.assertIn("encoder.layers.encoder_layer_0.mlp.linear_2.bias", old)
        other = build(NARROW_VIT)
        other.load_state_dict(old)
        self.assertEqual([tern.equal(*pair) for pair in zip(net.state_dict().values(), other.state_dict().values())].count(False), 0)

    def test_pictures_of_another_size(self):
        state = models.vision_transformer.interpolate_embeddings(48, 8, build(NARROW_VIT).state_dict(), reset_heads=True)
        self.assertEqual(state["encoder.pos_embedding"].shape, (1, 37, 16))
        self.assertNotIn("heads.head.weight", state)
        larger = models.VisionTransformer(48, 8, 2, 2, 16, 32)
        self.assertEqual(larger.load_state_dict(state, strict=False).missing_keys, ["heads.head.weight", "heads.head.bias"])
        self.assertRaises(tern.ShapeError, larger, tern.zeros(1, 3, 32, 32))

    def test_transfer(self):
        net = models.resnet18()
        for parameter in net.parameters():
            parameter.requires_grad = False
        net.fc = nn.Linear(512, 10)
        optimizer = tern.optim.SGD([parameter for parameter in net.parameters() if parameter.requires_grad], lr=0.1)
        before = copy.deepcopy(net.state_dict())
        x = tern.randn(4, 3, 32, 32)
        net.train()
        net(x).square().sum().backward()
        optimizer.step()
        changed = {name for name, tensor in net.state_dict().items() if not tern.equal(tensor, before[name])}
        self.assertEqual({name.rpartition(".")[2] for name in changed if not name.startswith("fc")},
                         {"running_mean", "running_var", "num_batches_tracked"})
        self.assertLessEqual({"fc.weight", "fc.bias"}, changed)
        self.assertIsNone(net.layer1[0].conv1.weight.grad)
        before = copy.deepcopy(net.eval().state_dict())
        self.assertTrue(tern.equal(net(x), copy.deepcopy(net)(x)))
        self.assertTrue(all(tern.equal(tensor, before[name]) for name, tensor in net.state_dict().items()))
        backbone = nn.Sequential(*list(net.children())[:-2])
        self.assertEqual(backbone(x).shape, (4, 512, 1, 1))
        looked_into = models._utils.IntermediateLayerGetter(net, {"layer2": "half", "layer4": "last"})
        self.assertEqual({name: tensor.shape[1] for name, tensor in looked_into(x).items()}, {"half": 128, "last": 512})
        net = models.mobilenet_v2()
        net.classifier[1] = nn.Linear(net.last_channel, 3)
        self.assertEqual(net(x).shape, (4, 3))

    def test_whole_models_in_files(self):
        x = tern.randn(2, 3, 32, 32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net")
            for text in ("models.resnet18()", "models.mobilenet_v3_small()", NARROW_CONVNEXT, NARROW_VIT, NARROW_DENSENET, NARROW_SWIN):
                with self.subTest(text):
                    net = build(text).eval()
                    tern.save(net, path)
                    self.assertTrue(tern.equal(tern.load(path, weights_only=False)(x), net(x)))


@unittest.skipIf(torchvision is None, "torchvision cannot be imported")
class BesideTorchvisionTest(unittest.TestCase):
    def test_names_and_shapes(self):
        block_params = torchvision.models.regnet.BlockParams
        from_init_params = block_params.from_init_params

        def with_numbers(**settings):
            with torch.device("cpu"):
                return from_init_params(**settings)

        for name in models.list_models():
            with self.subTest(name):
                options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
                with torch.device("meta"), mock.patch.object(block_params, "from_init_params", with_numbers):
                    theirs = getattr(torchvision.models, name)(**options)
                self.assertEqual(shapes(counted(name)), shapes(theirs))

    def test_weights(self):
        for name in models.list_models():
            with self.subTest(name):
                ours, theirs = models.get_model_weights(name), torchvision.models.get_model_weights(name)
                self.assertEqual(list(ours.__members__), list(theirs.__members__))
                self.assertEqual(ours.DEFAULT.name, theirs.DEFAULT.name)
                for a, b in zip(ours, theirs):
                    how, wanted = a.transforms.keywords, b.transforms()
                    self.assertEqual((repr(a), a.url, a.meta["num_params"]), (repr(b), b.url, b.meta["num_params"]))
                    self.assertEqual(([how["resize_size"]], [how["crop_size"]], list(how["mean"]), list(how["std"]), how["interpolation"]),
                                     (wanted.resize_size, wanted.crop_size, wanted.mean, wanted.std, wanted.interpolation.value))

    def test_first_numbers(self):
        for text, _ in SMALL:
            with self.subTest(text), tern.device("cpu"):
                tern.manual_seed(5, engine="torch")
                torch.manual_seed(5)
                ours, theirs = (build_narrow(text, package).state_dict() for package in (models, torchvision.models))
                self.assertEqual(list(ours), list(theirs))
                for name, tensor in theirs.items():
                    self.assertLessEqual(np.abs(array(ours[name]) - tensor.numpy()).max(), 1e-5, name)

    def test_outputs_and_gradients(self):
        for text, size in SMALL:
            theirs = build_narrow(text, torchvision.models).double()
            if hasattr(theirs, "heads"):
                torch.nn.init.normal_(theirs.heads.head.weight)  # which begin as zeros
            ours = build_narrow(text).double()
            ours.load_state_dict({name: tern.tensor(tensor.numpy()) for name, tensor in theirs.state_dict().items()})
            for training in (False, True):
                with self.subTest(text, training=training):
                    self.compare(ours.train(training), theirs.train(training), pictures(size))

    def compare(self, ours, theirs, x):
        results = []
        for net, package in ((ours, tern), (theirs, torch)):
            net.zero_grad()
            out = net(package.tensor(x))
            out = out if isinstance(out, tuple) else (out,)
            sum((each * each).sum() for each in out).backward()
            results.append({**{str(place): array(each) for place, each in enumerate(out)}, **{
                name: array(parameter.grad) for name, parameter in net.named_parameters() if parameter.grad is not None}})
        self.assertEqual(list(results[0]), list(results[1]))
        largest = max(np.abs(wanted).max() for wanted in results[1].values())
        for name, wanted in results[1].items():  # gradients that are 0 but for rounding have the size of others
            self.assertLessEqual(np.abs(results[0][name] - wanted).max(), 1e-4 * np.abs(wanted).max() + 1e-7 * largest, name)
        state = ours.state_dict()
        for name, tensor in theirs.state_dict().items():
            self.assertLessEqual(np.abs(array(state[name]) - tensor.numpy()).max(), 1e-6, name)

    def test_whole_models_in_files(self):
        families = ("convnext densenet efficientnet googlenet inception mnasnet mobilenetv2 mobilenetv3 regnet resnet shufflenetv2 "
                    "squeezenet swin_transformer vision_transformer").split()
        places = {f"torchvision.models.{family}": f"tern.models.{family}" for family in families}
        places |= {"torchvision.ops.misc": "tern.models._misc", "torchvision.ops.stochastic_depth": "tern.models._stochastic_depth"}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(tern.serialization._PLACES, places):
            path = os.path.join(folder, "net")
            for text, size in SMALL:
                if any(large in text for large in ("alexnet", "VGG", "inception_v3")):
                    continue
                with self.subTest(text), tern.device("cpu"):
                    x = pictures(size, 2).astype(np.float32)
                    theirs = build(text, torchvision.models).eval()
                    torch.save(theirs, path)
                    wanted, ours = theirs(torch.tensor(x)).detach().numpy(), tern.load(path, weights_only=False)
                    self.assertEqual(type(ours).__module__.partition(".")[2], type(theirs).__module__.partition(".")[2])
                    np.testing.assert_allclose(array(ours(tern.tensor(x))), wanted, rtol=1e-4, atol=1e-5)
                    for net in (ours, build(text).eval()):
                        tern.save(net, path)
                        back = torch.load(path, weights_only=False)
                        self.assertIs(type(back), type(theirs))
                        np.testing.assert_allclose(array(net(tern.tensor(x))), back(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
