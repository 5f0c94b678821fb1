"""Pictures side by side, as torchvision.utils."""

from tern import _C, io


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    """Pictures [n, channels, height, width], or a list of pictures, as one: `nrow` in a row, `padding` pixels around each. Those of one
    channel get three. `normalize` maps the values, or `value_range`, to 0 to 1: of all pictures, or with `scale_each` of each."""
    pictures = _C.stack(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor
    if not isinstance(pictures, _C.Tensor) or pictures.dim() not in (2, 3, 4):
        raise TypeError("make_grid: expects a tensor [n, channels, height, width] or a list of pictures, got "
                        f"{list(pictures.shape) if isinstance(pictures, _C.Tensor) else type(pictures).__name__}")
    if pictures.dim() == 2:
        pictures = pictures[None]
    if pictures.dim() == 3:
        pictures = pictures[None]
    if pictures.size(1) == 1:
        pictures = pictures.repeat(1, 3, 1, 1)
    if normalize:
        pictures = _C.stack([_to_unit(x, value_range) for x in pictures]) if scale_each else _to_unit(pictures, value_range)
    count, channels, height, width = pictures.shape
    if count == 1:
        return pictures[0]
    columns = min(nrow, count)
    rows = (count + columns - 1) // columns
    grid = _C.full((channels, rows * (height + padding) + padding, columns * (width + padding) + padding), pad_value,
                   dtype=pictures.dtype, device=pictures.device)
    for place in range(count):
        top, left = (place // columns) * (height + padding) + padding, (place % columns) * (width + padding) + padding
        grid[:, top:top + height, left:left + width] = pictures[place]
    return grid


def _to_unit(pictures, value_range):
    low, high = value_range or (pictures.min().item(), pictures.max().item())
    return (pictures.clamp(low, high) - low) / max(high - low, 1e-5)


def save_image(tensor, fp, **options):
    """Writes make_grid(tensor, **options) as a PNG file; floats are 0 to 1."""
    io.write_png(make_grid(tensor, **options).cpu(), fp)
