"""MobileNetV2 and MobileNetV3 in one place."""

from tern.models import mobilenetv2, mobilenetv3
from tern.models.mobilenetv2 import *  # noqa: F401, F403
from tern.models.mobilenetv3 import *  # noqa: F401, F403

__all__ = [*mobilenetv2.__all__, *mobilenetv3.__all__]
