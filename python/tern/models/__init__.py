"""Networks that classify pictures, with torchvision's names, arguments, parameters and initialisation, so that its weights fit.

`resnet18(weights=...)` takes a member of ResNet18_Weights (or its name), the path of a file, or a state dict. Nothing is downloaded: the
members name files, which are looked for in the folder of the environment variable TERN_MODELS, where PyTorch keeps them, and in the
working directory.
"""

from tern.models.alexnet import *  # noqa: F401, F403
from tern.models.convnext import *  # noqa: F401, F403
from tern.models.densenet import *  # noqa: F401, F403
from tern.models.efficientnet import *  # noqa: F401, F403
from tern.models.googlenet import *  # noqa: F401, F403
from tern.models.inception import *  # noqa: F401, F403
from tern.models.mnasnet import *  # noqa: F401, F403
from tern.models.mobilenet import *  # noqa: F401, F403
from tern.models.regnet import *  # noqa: F401, F403
from tern.models.resnet import *  # noqa: F401, F403
from tern.models.shufflenetv2 import *  # noqa: F401, F403
from tern.models.squeezenet import *  # noqa: F401, F403
from tern.models.swin_transformer import *  # noqa: F401, F403
from tern.models.vgg import *  # noqa: F401, F403
from tern.models.vision_transformer import *  # noqa: F401, F403
from tern.models._api import *  # noqa: F401, F403
