"""Boxes in pictures: [n, 4] with the corners (x1, y1, x2, y2) of each in a row, unless said otherwise."""

import tern


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _overlaps(a, b):
    """The areas that pairs of boxes share, and that they cover together: [n, m] each."""
    sides = (tern.minimum(a[:, None, 2:], b[:, 2:]) - tern.maximum(a[:, None, :2], b[:, :2])).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    return shared, box_area(a)[:, None] + box_area(b) - shared


def box_iou(boxes1, boxes2):
    """Shared area divided by covered area, [n, m]."""
    shared, covered = _overlaps(boxes1, boxes2)
    return shared / covered


def generalized_box_iou(boxes1, boxes2):
    """box_iou() less the share of the smallest box around both that neither covers (Rezatofighi et al., 2019)."""
    shared, covered = _overlaps(boxes1, boxes2)
    sides = (tern.maximum(boxes1[:, None, 2:], boxes2[:, 2:]) - tern.minimum(boxes1[:, None, :2], boxes2[:, :2])).clamp(min=0)
    around = sides[..., 0] * sides[..., 1]
    return shared / covered - (around - covered) / around


def nms(boxes, scores, iou_threshold):
    """The places of the boxes that stay, best first: each that overlaps no better one by more than the threshold."""
    if boxes.dim() != 2 or boxes.size(1) != 4 or scores.shape != boxes.shape[:1]:
        raise tern.ShapeError(f"nms: expected boxes [n, 4] and scores [n], got {list(boxes.shape)} and {list(scores.shape)}")
    order = scores.argsort(descending=True, stable=True)
    overlaps = (box_iou(boxes[order], boxes[order]) > iou_threshold).cpu().numpy()
    suppressed, kept = [False] * len(order), []
    for place in range(len(order)):
        if suppressed[place]:
            continue
        kept.append(place)
        for later in overlaps[place, place + 1:].nonzero()[0]:
            suppressed[place + 1 + later] = True
    return order[tern.tensor(kept, dtype=tern.int64, device=order.device)]


def batched_nms(boxes, scores, idxs, iou_threshold):
    """nms() among the boxes of each class."""
    if boxes.numel() == 0:
        return tern.empty(0, dtype=tern.int64, device=boxes.device)
    apart = idxs.to(boxes.dtype) * (boxes.max() + 1)
    return nms(boxes + apart[:, None], scores, iou_threshold)


def clip_boxes_to_image(boxes, size):
    """The parts inside a picture of that (height, width)."""
    height, width = size
    return tern.stack([boxes[..., 0].clamp(0, width), boxes[..., 1].clamp(0, height),
                       boxes[..., 2].clamp(0, width), boxes[..., 3].clamp(0, height)], -1)


def remove_small_boxes(boxes, min_size):
    """The places of those whose sides are at least min_size."""
    return tern.where((boxes[:, 2] - boxes[:, 0] >= min_size) & (boxes[:, 3] - boxes[:, 1] >= min_size))[0]


def box_convert(boxes, in_fmt, out_fmt):
    """From one way of writing to another: corners "xyxy", a corner and sides "xywh", the middle and sides "cxcywh"."""
    for word in (in_fmt, out_fmt):
        if word not in ("xyxy", "xywh", "cxcywh"):
            raise ValueError(f"box_convert: unsupported format {word!r}: xyxy, xywh or cxcywh")
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    if out_fmt == "xywh":
        a, b, c, d = a, b, c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return tern.stack([a, b, c, d], -1)


def masks_to_boxes(masks):
    """The smallest boxes around the parts of the masks [n, height, width] that are not 0."""
    found = tern.zeros(len(masks), 4, dtype=tern.float32, device=masks.device)
    for place, mask in enumerate(masks):
        y, x = tern.where(mask != 0)
        if len(x):
            found[place] = tern.stack([x.min(), y.min(), x.max(), y.max()])
    return found
