"""tern.ops: boxes in pictures and what torchvision has beside them, by numbers that can be checked by hand."""

import unittest

import tern
from tern import ops

BOXES = tern.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0], [0.0, 0.0, 2.0, 1.0], [5.0, 5.0, 6.0, 7.0]])


class Boxes(unittest.TestCase):
    def close(self, found, expected):
        self.assertTrue(tern.allclose(found.cpu(), tern.tensor(expected, dtype=found.dtype, device="cpu")), found)

    def test_areas(self):
        self.close(ops.box_area(BOXES), [4, 4, 2, 2])
        self.close(ops.box_iou(BOXES[:1], BOXES), [[1, 1 / 7, 0.5, 0]])
        self.close(ops.generalized_box_iou(BOXES[:1], BOXES), [[1, 1 / 7 - 2 / 9, 0.5, -36 / 42]])

    def test_which_stay(self):
        scores = tern.tensor([0.5, 0.9, 0.8, 0.1])
        for threshold, kept in ((0.1, [1, 2, 3]), (0.4, [1, 2, 3]), (0.5, [1, 2, 0, 3]), (0.0, [1, 2, 3])):
            self.assertEqual(ops.nms(BOXES, scores, threshold).tolist(), kept, threshold)
        self.assertEqual(ops.batched_nms(BOXES, scores, tern.tensor([0, 0, 1, 1]), 0.1).tolist(), [1, 2, 3])
        self.assertEqual(ops.batched_nms(BOXES, scores, tern.tensor([0, 1, 2, 3]), 0.1).tolist(), [1, 2, 0, 3])
        self.assertEqual(ops.nms(BOXES[:0], scores[:0], 0.5).tolist(), [])
        with self.assertRaisesRegex(tern.ShapeError, r"expected boxes \[n, 4\]"):
            ops.nms(BOXES, scores[:2], 0.5)
        self.assertEqual(ops.remove_small_boxes(BOXES, 2).tolist(), [0, 1])

    def test_ways_of_writing(self):
        for way, expected in (("xywh", [1, 1, 2, 4]), ("cxcywh", [2, 3, 2, 4]), ("xyxy", [1, 1, 3, 5])):
            written = ops.box_convert(tern.tensor([[1.0, 1.0, 3.0, 5.0]]), "xyxy", way)
            self.close(written, [expected])
            self.close(ops.box_convert(written, way, "xyxy"), [[1, 1, 3, 5]])
        with self.assertRaisesRegex(ValueError, "xyxy, xywh or cxcywh"):
            ops.box_convert(BOXES, "xyxy", "yxyx")
        self.close(ops.clip_boxes_to_image(tern.tensor([[-1.0, 2.0, 9.0, 9.0]]), (5, 7)), [[0, 2, 7, 5]])
        masks = tern.zeros(2, 4, 5)
        masks[0, 1:3, 2:4] = 1
        self.close(ops.masks_to_boxes(masks), [[2, 1, 3, 2], [0, 0, 0, 0]])

    def test_frozen_norm(self):
        x, norm, frozen = tern.rand(2, 3, 4, 4), tern.nn.BatchNorm2d(3), ops.FrozenBatchNorm2d(3)
        with tern.no_grad():
            norm(x)
            norm.weight.copy_(tern.tensor([1.0, 2.0, 3.0]))
        frozen.load_state_dict(norm.state_dict())  # num_batches_tracked too
        self.assertTrue(tern.allclose(frozen(x), norm.eval()(x), atol=1e-6))
        self.assertEqual((str(frozen), list(frozen.parameters())), ("FrozenBatchNorm2d(3, eps=1e-05)", []))

    def test_focal_loss(self):
        x, y = tern.tensor([0.0, 2.0]), tern.tensor([1.0, 0.0])
        entropy = tern.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
        right = tern.tensor([0.5, 1 - tern.sigmoid(x[1]).item()])
        self.assertTrue(tern.allclose(ops.sigmoid_focal_loss(x, y), entropy * (1 - right) ** 2 * tern.tensor([0.25, 0.75])))
        self.assertTrue(tern.allclose(ops.sigmoid_focal_loss(x, y, alpha=-1, gamma=0, reduction="sum"), entropy.sum()))
        with self.assertRaisesRegex(ValueError, "none, mean or sum"):
            ops.sigmoid_focal_loss(x, y, reduction="all")


if __name__ == "__main__":
    unittest.main()
