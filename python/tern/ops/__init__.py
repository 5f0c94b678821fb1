"""torchvision.ops: boxes in pictures, and layers that its networks share."""

from tern.models._misc import MLP, Conv2dNormActivation, Permute, SqueezeExcitation  # noqa: F401
from tern.models._stochastic_depth import StochasticDepth, stochastic_depth  # noqa: F401
from tern.ops import boxes, misc  # noqa: F401
from tern.ops.boxes import (  # noqa: F401
    batched_nms, box_area, box_convert, box_iou, clip_boxes_to_image, generalized_box_iou, masks_to_boxes, nms, remove_small_boxes)
from tern.ops.misc import FrozenBatchNorm2d, sigmoid_focal_loss  # noqa: F401
