"""tern.transforms: arguments and results as torchvision's, by formulas of NumPy where nothing is drawn; what is put together, with
functions of Python too; pictures of other libraries; and errors."""

import copy
import pickle
import unittest

import numpy as np
import tern
from tern import transforms as T
from tern.transforms import functional as F
from tern.transforms import v2

SHAPE = (3, 4, 6)
BYTES = (np.arange(72, dtype=np.int64).reshape(SHAPE) * 37 % 256).astype(np.uint8)


def picture():
    return tern.tensor(BYTES, device="cpu")


def padded(a, left, top, right, bottom, **how):
    return np.pad(a, ((0, 0), (top, bottom), (left, right)), **how)


def grey(a):
    """PIL's convert("L")."""
    r, g, b = a.astype(np.int64)
    return ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16).astype(np.uint8)[None]


def autocontrast(a):
    low, high = (f(a, axis=(1, 2), keepdims=True).astype(np.float32) for f in (np.min, np.max))
    return ((a - low) * (np.float32(255) / (high - low))).clip(0, 255).astype(np.uint8)


def corners(a, height, width):
    top, left = round((4 - height) / 2), round((6 - width) / 2)
    return np.stack([a[:, :height, :width], a[:, :height, -width:], a[:, -height:, :width], a[:, -height:, -width:],
                     a[:, top:top + height, left:left + width]])


# What each makes of the picture.
ROWS = [
    ("T.ToTensor()", lambda a: a.astype(np.float32) / np.float32(255)),
    ("T.PILToTensor()", lambda a: a),
    ("T.ConvertImageDtype(tern.float32)", lambda a: a.astype(np.float32) / np.float32(255)),
    ("T.CenterCrop(2)", lambda a: a[:, 1:3, 2:4]),
    ("T.CenterCrop(size=(2, 4))", lambda a: a[:, 1:3, 1:5]),
    ("T.CenterCrop([6, 6])", lambda a: padded(a, 0, 1, 0, 1)),
    ("T.FiveCrop(2)", lambda a: corners(a, 2, 2)),
    ("T.FiveCrop((2, 4))", lambda a: corners(a, 2, 4)),
    ("T.TenCrop((2, 4))", lambda a: np.concatenate([corners(a, 2, 4), corners(a[:, :, ::-1], 2, 4)])),
    ("T.TenCrop(2, vertical_flip=True)", lambda a: np.concatenate([corners(a, 2, 2), corners(a[:, ::-1], 2, 2)])),
    ("T.Pad(1)", lambda a: padded(a, 1, 1, 1, 1)),
    ("T.Pad((1, 2), fill=7)", lambda a: padded(a, 1, 2, 1, 2, constant_values=7)),
    ("T.Pad([1, 2, 3, 0], padding_mode='reflect')", lambda a: padded(a, 1, 2, 3, 0, mode="reflect")),
    ("T.Pad(2, 0, 'edge')", lambda a: padded(a, 2, 2, 2, 2, mode="edge")),
    ("T.Pad(padding=(3, 1), padding_mode='symmetric')", lambda a: padded(a, 3, 1, 3, 1, mode="symmetric")),
    ("T.RandomCrop((4, 6))", lambda a: a),
    ("T.RandomCrop((8, 8), padding=(1, 2))", lambda a: padded(a, 1, 2, 1, 2)),
    ("T.RandomCrop((6, 8), 1, False, (1, 2, 3), 'constant')",
     lambda a: np.stack([padded(a[c:c + 1], 1, 1, 1, 1, constant_values=c + 1)[0] for c in range(3)])),
    ("T.RandomCrop(4, pad_if_needed=True)(a[:, :, :4])", lambda a: a[:, :, :4]),
    ("T.RandomHorizontalFlip(1)", lambda a: a[:, :, ::-1]),
    ("T.RandomHorizontalFlip(p=0.0)", lambda a: a),
    ("T.RandomVerticalFlip(p=1)", lambda a: a[:, ::-1]),
    ("T.RandomRotation((90, 90), expand=True)", lambda a: np.rot90(a, 1, (1, 2))),
    ("T.RandomRotation((180, 180), 'nearest')", lambda a: a[:, ::-1, ::-1]),
    ("T.RandomRotation(0, T.InterpolationMode.BILINEAR, False, (2, 2), 5)", lambda a: a),
    ("T.RandomAffine(0)", lambda a: a),
    ("T.RandomAffine((180, 180), translate=None, scale=(1, 1), shear=(0, 0, 0, 0))", lambda a: a[:, ::-1, ::-1]),
    ("T.RandomPerspective(0.5, p=0)", lambda a: a),
    ("T.ElasticTransform(alpha=0.0)", lambda a: a),
    ("T.Grayscale()", grey),
    ("T.Grayscale(num_output_channels=3)", lambda a: grey(a).repeat(3, 0)),
    ("T.RandomGrayscale(p=1)", lambda a: grey(a).repeat(3, 0)),
    ("T.RandomInvert(1)", lambda a: 255 - a),
    ("T.RandomPosterize(3, p=1)", lambda a: a & 0xE0),
    ("T.RandomSolarize(threshold=100, p=1)", lambda a: np.where(a >= 100, 255 - a, a)),
    ("T.RandomAutocontrast(p=1)", autocontrast),
    ("T.RandomEqualize(p=0)", lambda a: a),
    ("T.RandomAdjustSharpness(1, p=1)", lambda a: a),
    ("T.ColorJitter()", lambda a: a),
    ("T.ColorJitter(brightness=(0.5, 0.5))", lambda a: (a * np.float32(0.5)).astype(np.uint8)),
    ("T.ColorJitter(0, (0, 0))", lambda a: np.full_like(a, int(grey(a).mean()))),
    ("T.GaussianBlur(3, sigma=1e-3)", lambda a: a),
    ("T.GaussianBlur((1, 3), (1e-3, 1e-3))", lambda a: a),
    ("T.RandomErasing(p=0)", lambda a: a),
    ("T.Resize((4, 6))", lambda a: a),
    ("T.Resize((2, 3), T.InterpolationMode.BOX)",
     lambda a: (a.reshape(3, 2, 2, 3, 2).sum((2, 4), dtype=np.int64) / 4 + 0.5).astype(np.uint8)),
    ("T.Normalize(tern.tensor([1., 2, 3]), np.array([1, 2, 2]))(a.float())", lambda a: (a - np.float32([[[1]], [[2]], [[3]]])) / np.float32([[[1]], [[2]], [[2]]])),
    ("T.Resize((2, 3), 0)", lambda a: a[:, 1::2, 1::2]),
    ("T.Resize((4, 6), T.InterpolationMode.LANCZOS)", lambda a: a),
    ("F.hflip", lambda a: a[:, :, ::-1]),
    ("F.vflip", lambda a: a[:, ::-1]),
    ("F.crop(a, 1, 2, 2, 3)", lambda a: a[:, 1:3, 2:5]),
    ("F.crop(a, -1, 5, 3, 3)", lambda a: padded(a[:, :2, 5:], 0, 1, 2, 0)),
    ("F.rotate(a, 180)", lambda a: a[:, ::-1, ::-1]),
    ("F.erase(a, 1, 2, 2, 3, 9)", lambda a: np.where(np.pad(np.ones((2, 3), bool), ((1, 1), (2, 1)))[None], np.uint8(9), a)),
    ("F.adjust_brightness(a, 0.5)", lambda a: (a * np.float32(0.5)).astype(np.uint8)),
    ("F.posterize(a, bits=3)", lambda a: a & 0xE0),
    ("v2.ToDtype(tern.float32, scale=True)", lambda a: a.astype(np.float32) / np.float32(255)),
    ("v2.ToDtype(tern.int64)", lambda a: a.astype(np.int64)),
]
# What is drawn: shapes.
RANDOM = [
    ("T.RandomCrop(3)", (3, 3, 3)), ("T.RandomCrop((6, 8), pad_if_needed=True)", (3, 6, 8)), ("T.RandomResizedCrop(5)", (3, 5, 5)),
    ("T.RandomResizedCrop((2, 7), scale=(0.5, 1), ratio=(1, 1), interpolation='box')", (3, 2, 7)), ("T.RandomRotation(90)", SHAPE),
    ("T.RandomAffine(10, (0.3, 0.3), (0.5, 2), 10, fill=(1, 2, 3))", SHAPE), ("T.RandomPerspective(p=1)", SHAPE),
    ("T.ElasticTransform(50.0, [2.0, 3.0])", SHAPE), ("T.ColorJitter(0.5, 0.5, (0.1, 2), 0.5)", SHAPE), ("T.GaussianBlur(3)", SHAPE),
    ("T.RandomErasing(1, (0.1, 0.3), value=(1, 2, 3))", SHAPE), ("T.AutoAugment(T.AutoAugmentPolicy.SVHN)", SHAPE),
    ("T.AutoAugment('cifar10', 'bilinear', 0)", SHAPE), ("T.RandAugment(3, magnitude=20)", SHAPE), ("T.TrivialAugmentWide(31)", SHAPE),
    ("T.AugMix(severity=5, all_ops=False)", SHAPE), ("T.RandomSolarize(100)", SHAPE),
    ("T.RandomChoice([T.RandomInvert(1), T.RandomVerticalFlip(1)], p=[1, 1])", SHAPE),
    ("T.RandomOrder([T.RandomSolarize(100, 1), T.RandomPosterize(3, 1)])", SHAPE),
    ("T.RandomApply([T.RandomInvert(1)], p=0.5)", SHAPE), ("T.Compose([lambda x: x.flip(1), T.RandomInvert()])", SHAPE),
]
ERRORS = [
    ("T.Resize(4, interpolation='cubic')", NotImplementedError, "interpolation of a resize 'cubic'.*bilinear, bicubic, box"),
    ("T.Resize(4, max_size=8)", NotImplementedError, "max_size"), ("T.Resize(4, antialias=False)", NotImplementedError, "antialias"),
    ("T.Resize('4')", TypeError, ""), ("T.Resize((1, 2, 3))", ValueError, "Resize.*3 numbers"), ("T.Resize(4, sise=3)", TypeError, ""),
    ("T.Pad((1, 2, 3))", ValueError, "1, 2 .* or 4 numbers, got 3"), ("T.Pad(1, padding_mode='wrap')", NotImplementedError, "'wrap'"),
    ("T.Normalize((0.5,), (0.0,))", ValueError, "std not 0"), ("T.Normalize(0.5, (1, 2))", ValueError, "got 1 and 2"),
    ("T.RandomHorizontalFlip(2)", ValueError, "2"), ("T.RandomAffine(0, shear=(1, 2, 3))", ValueError, "got 3"),
    ("T.GaussianBlur(2)", ValueError, "odd"), ("T.RandomErasing(value='noise')", ValueError, "'noise'"),
    ("T.AutoAugment('mnist')", NotImplementedError, "imagenet, cifar10, svhn"), ("T.ColorJitter(hue=1)", ValueError, "hue"),
    ("T.Compose(T.ToTensor())", TypeError, "expects a list of transforms, got ToTensor"), ("T.Compose(3)", TypeError, "list"),
    ("T.Compose([T.ToTensor(), 3])", TypeError, "3 can not be called"), ("T.Lambda(3)", TypeError, "callable"),
    ("T.RandomChoice([T.ToTensor()], p=[1, 2])", ValueError, "2 != 1"), ("T.RandomCrop(9)(a)", ValueError, "RandomCrop"),
    ("T.Resize(4)(a.long())", tern.DTypeError, "int64"), ("T.Resize(4)(a[0])", tern.ShapeError, "Resize"),
    ("T.Grayscale()(a[:2])", tern.ShapeError, "2"), ("T.Normalize([0, 0], [1, 1])(a.float())", ValueError, "2 means for 3"),
    ("T.ToTensor()('photo.png')", TypeError, "not str"), ("T.ToTensor()(np.zeros(3))", ValueError, "1 dimension"),
    ("T.RandomCrop(2)(a[:, :0])", Exception, "RandomCrop"), ("T.Resize(4).sides", AttributeError, "sides"),
    ("T.ConvertImageDtype(tern.int64)", NotImplementedError, "int64"), ("T.MixUp(alpha=0)", ValueError, "alpha"),
    ("T.MixUp(0.5)", TypeError, ""), ("T.MixUp(alpha=1.0)(a.float()[None], tern.tensor([1]))", ValueError, "num_classes"),
    ("T.CutMix(num_classes=2)((a, a, a))", TypeError, "got 3"),
]


def of(text):
    return eval(text, {"T": T, "F": F, "v2": v2, "tern": tern, "np": np, "a": picture()})


def made(text):
    """What the row gives for the picture."""
    result = of(text)
    return result if isinstance(result, tern.Tensor) else result(picture())


class Results(unittest.TestCase):
    def test_formulas(self):
        for text, formula in ROWS:
            with self.subTest(text):
                result, wanted = made(text), np.ascontiguousarray(formula(BYTES))
                self.assertEqual((result.dtype, tuple(result.shape)), (tern.tensor(wanted).dtype, wanted.shape))
                np.testing.assert_array_equal(result.numpy(), wanted)

    def test_normalised(self):
        x = T.Compose([T.ToTensor(), T.Normalize((0.5, 0.25, 0.0), (0.5, 1.0, 2.0))])(picture()).numpy()
        mean, std = np.float32([[[0.5]], [[0.25]], [[0]]]), np.float32([[[0.5]], [[1]], [[2]]])
        np.testing.assert_array_equal(x, (BYTES.astype(np.float32) / np.float32(255) - mean) / std)

    def test_draws_follow_the_seed(self):
        for text, shape in RANDOM:
            with self.subTest(text):
                runs = []
                for _ in range(2):
                    tern.manual_seed(3)
                    transform = of(text)
                    runs.append([transform(picture()) for _ in range(12)])
                self.assertEqual({(tuple(x.shape), x.dtype) for x in runs[0]}, {(shape, tern.uint8)})
                self.assertTrue(all(tern.equal(x, y) for x, y in zip(*runs)))
                self.assertTrue(any(not tern.equal(x, runs[0][0]) for x in runs[0]))

    def test_batches(self):
        images, labels = tern.rand(4, 3, 8, 8), tern.tensor([0, 1, 2, 1])
        x, y = T.MixUp(alpha=0.4, num_classes=3)(images, labels)
        self.assertEqual((tuple(x.shape), tuple(y.shape)), ((4, 3, 8, 8), (4, 3)))
        self.assertTrue(tern.allclose(y.sum(1), tern.ones(4)))
        part = y[0, 0].item()  # sample 0 has class 0, the one before it class 1
        self.assertTrue(tern.allclose(x[0], images[0] * part + images[3] * (1 - part), atol=1e-6))
        x, y = v2.CutMix(num_classes=3)([images, labels])
        kept = (x == images).all(1)[0].float().mean().item()
        self.assertAlmostEqual(kept, y[0, 0].item(), places=5)
        loader = tern.utils.data.DataLoader(
            [(images[i], i % 3) for i in range(4)], batch_size=4,
            collate_fn=lambda batch: T.MixUp(num_classes=3)(*tern.utils.data.default_collate(batch)))
        self.assertEqual(tuple(next(iter(loader))[1].shape), (4, 3))

    def test_among_modules(self):
        steps = tern.nn.Sequential(T.RandomHorizontalFlip(1), T.Compose([T.RandomInvert(1)]), tern.nn.Flatten())
        self.assertTrue(tern.equal(steps(picture()[None]), (255 - picture().flip(-1)).flatten()[None]))
        self.assertEqual(str(steps).splitlines()[1], "  (0): RandomHorizontalFlip(p=1.0)")
        self.assertEqual(len(tern.nn.ModuleList([T.RandomInvert()])), 1)
        with self.assertRaisesRegex(TypeError, "no module"):
            tern.nn.Sequential(3)

    def test_all_pictures_of_a_batch_alike(self):
        one, other = picture(), picture().flip(-1)
        batch = tern.stack([one, other, one])[:, None]
        texts = [text for text, _ in ROWS + RANDOM if text.startswith("T.") and "(a" not in text and "lambda" not in text]
        self.assertGreater(len(texts), 50)
        for text in texts:
            with self.subTest(text):
                transform, results = of(text), []
                for given in (batch, one, other):
                    tern.manual_seed(3)
                    results.append(transform(given))
                several = int(results[1].dim() > 3)  # crops of each picture
                wanted = tern.stack([results[1], results[2], results[1]], several).unsqueeze(1 + several)
                self.assertTrue(tern.equal(results[0], wanted))
        self.assertEqual((F.get_dimensions(batch), F.get_image_size(one), F.get_image_num_channels(one)), ([3, 4, 6], [6, 4], 3))
        with self.assertRaisesRegex(tern.ShapeError, "a batch of none"):
            T.RandomInvert()(batch[:0])

    def test_errors(self):
        for text, error, words in ERRORS:
            with self.subTest(text), self.assertRaisesRegex(error, words):
                of(text)

    @unittest.skipUnless(tern.cuda.is_available(), "needs a GPU, a simulated one too")
    def test_pictures_are_the_hosts(self):
        for text in ("T.ToTensor()", "T.Resize(4)", "T.RandomInvert(1)"):
            with self.subTest(text), self.assertRaisesRegex(tern.DeviceError, "cuda:0"):
                of(text)(picture().to("cuda:0"))


class Picture:
    """As much of PIL's as is asked for."""

    def __init__(self, mode, pixels):
        self.mode, self.pixels = mode, pixels
        self.height, self.width = pixels.shape[:2]

    def tobytes(self):
        return self.pixels.tobytes()

    def convert(self, mode):
        return Picture(mode, self.pixels)


class Objects(unittest.TestCase):
    def test_pictures_of_others(self):
        rows = np.ascontiguousarray(BYTES.transpose(1, 2, 0))
        for given, wanted in ((rows, BYTES), (rows[:, :, 0], BYTES[:1]), (rows[::-1], BYTES[:, ::-1]), (Picture("RGB", rows), BYTES),
                              (Picture("L", rows[:, :, 0].copy()), BYTES[:1]), (Picture("1", rows[:, :, 0].copy()), BYTES[:1])):
            np.testing.assert_array_equal(T.PILToTensor()(given).numpy(), wanted)
            np.testing.assert_array_equal(F.hflip(given).numpy(), wanted[:, :, ::-1])
            np.testing.assert_array_equal(T.ToTensor()(given).numpy(), wanted.astype(np.float32) / np.float32(255))
        with self.assertRaisesRegex(TypeError, "mode 'I;16'.*convert"):
            T.ToTensor()(Picture("I;16", rows))

    def test_what_they_are_made_of(self):
        rotation = T.RandomRotation(30, fill=(1, 2, 3))
        self.assertEqual(repr(rotation), "RandomRotation(degrees=(-30.0, 30.0), interpolation='nearest', expand=False, center=None, "
                                         "fill=(1.0, 2.0, 3.0))")
        self.assertEqual((rotation.degrees, T.Resize((2, 3)).size, T.Resize(5).size, T.ColorJitter(0.5).brightness),
                         ((-30, 30), (2, 3), 5, 0.5))
        for text, _ in ROWS + RANDOM:
            transform = of(text)
            if isinstance(transform, tern._C._Transform):
                for same in (copy.copy(transform), copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
                    self.assertEqual((type(same), repr(same)), (type(transform), repr(transform)), text)
        self.assertEqual(repr(T.Compose([T.ToTensor(), T.RandomInvert(0.25)])),
                         "Compose(\n    ToTensor()\n    RandomInvert(p=0.25)\n)")

    def test_compose(self):
        steps = T.Compose([T.RandomInvert(1)])
        steps.transforms.insert(0, T.Lambda(lambda x: x // 2))
        np.testing.assert_array_equal(steps(picture()).numpy(), 255 - BYTES // 2)
        kinds = []
        T.Compose([T.ToTensor(), lambda x: kinds.append(x.dtype) or x, T.Resize(2)])(picture())
        self.assertEqual(kinds, [tern.float32])
        self.assertEqual(T.Compose([lambda x: "anything"])(picture()), "anything")
        self.assertIs(T.RandomApply([lambda x: None], p=0)(3), 3)
        self.assertEqual(T.RandomChoice([lambda x: x + 1])(3), 4)
        self.assertIn(T.RandomOrder([lambda x: x + 1, lambda x: x * 2])(3), (7, 8))
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            T.Compose([lambda x: 1 // 0])(picture())

    def test_which_run_without_python(self):
        from tern.transforms.compose import extension_steps

        class Own(T.RandomInvert):
            def __call__(self, x):
                return x

        class OwnCompose(T.Compose):
            def __call__(self, x):
                return x

        inner = T.RandomOrder([T.RandomApply([T.RandomInvert()]), T.RandomChoice([T.Resize(4)])])
        for transform, count in ((T.ToTensor(), 1), (T.Compose([T.ToTensor(), T.Compose([T.Resize(4), inner])]), 3), (T.PILToTensor(), 0),
                                 (Own(1), None), (T.Compose([T.ToTensor(), Own(1)]), None), (OwnCompose([T.ToTensor()]), None),
                                 (T.RandomApply([lambda x: x]), None), (T.Lambda(len), None), (len, None)):
            steps = extension_steps(transform)
            self.assertEqual(steps if steps is None else len(steps), count, transform)
        self.assertTrue(tern.equal(Own(1)(picture()), picture()))


if __name__ == "__main__":
    unittest.main()
