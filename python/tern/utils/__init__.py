"""What PyTorch keeps in torch.utils."""

from tern.utils import checkpoint, data  # noqa: F401
