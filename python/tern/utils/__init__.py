"""What PyTorch keeps in torch.utils, and torchvision in torchvision.utils."""

from tern.utils import checkpoint, data  # noqa: F401
from tern.utils.images import make_grid, save_image  # noqa: F401
