"""What TensorBoard shows: `from tern.utils.tensorboard import SummaryWriter`, then `tensorboard --logdir runs`."""

import os
import re
import socket
import time

from tern import _C
from tern.utils.images import make_grid


class SummaryWriter:
    """Scalars, histograms, pictures and texts of a run, in an event file of the folder `log_dir`; each is in the file when the call
    returns. With `purge_step` TensorBoard forgets what earlier files of the folder have from that step on."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir = str(log_dir)
        self._resume = -1 if purge_step is None else purge_step
        self._files = {}
        self._file(self.log_dir)

    def _file(self, folder):
        if self._files is None:
            self._files = {}  # written to after close(): a new file, as PyTorch's
        if folder not in self._files:
            os.makedirs(folder, exist_ok=True)
            self._files[folder] = _C._EventFile(folder, self._resume)
        return self._files[folder]

    def get_logdir(self):
        return self.log_dir

    def _add(self, kind, tag, value, step, walltime, folder=None):
        tag = re.sub(r"[^-/\w.]", "_", tag).lstrip("/")
        getattr(self._file(folder or self.log_dir), kind)(tag, value, 0 if step is None else int(step), walltime)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number, or a tensor with one."""
        self._add("add_scalar", tag, float(scalar_value), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one diagram, each in a folder `log_dir/main_tag_name`."""
        for name, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{name}")
            self._add("add_scalar", main_tag, float(value), global_step, walltime, folder)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How a tensor's or an array's numbers are spread; what is not finite is left out."""
        if bins != "tensorflow" or max_bins is not None:
            raise NotImplementedError("add_histogram: only bins='tensorflow' without max_bins is supported")
        self._add("add_histogram", tag, _C.as_tensor(values).reshape(-1), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """One picture: bytes, or floats from 0 to 1."""
        self._add("add_image", tag, _channels_first(img_tensor, dataformats, "add_image"), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several pictures side by side, eight in a row."""
        pictures = _channels_first(img_tensor, dataformats, "add_images")
        self._add("add_image", tag, make_grid(pictures, padding=0), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of figures side by side."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        figures, pictures = figure if isinstance(figure, list) else [figure], []
        for each in figures:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            width, height = canvas.get_width_height()
            pixels = _C.frombuffer(bytearray(canvas.buffer_rgba()), dtype=_C.uint8).reshape(height, width, 4)
            pictures.append(pixels[:, :, :3].permute(2, 0, 1))
            if close:
                pyplot.close(each)
        self._add("add_image", tag, make_grid(pictures, padding=0), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text in Markdown."""
        self._add("add_text", f"{tag}/text_summary", text_string, global_step, walltime)

    def flush(self):
        """Returns when everything is on the disk."""
        for file in (self._files or {}).values():
            file.sync()

    def close(self):
        self.flush()
        self._files = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _channels_first(picture, formats, function):
    """A picture [C, H, W] or pictures [N, C, H, W] of one whose dimensions are in the order of `formats`."""
    picture, formats = picture if isinstance(picture, _C.Tensor) else _C.as_tensor(picture), formats.upper()
    wanted = "NCHW" if "N" in formats else "CHW"
    if sorted(formats) not in (sorted(wanted), ["H", "W"]) or picture.dim() != len(formats):
        raise ValueError(f"{function}: dataformats={formats!r} does not fit a tensor {list(picture.shape)}; there are "
                         "CHW, HWC, HW, NCHW and NHWC")
    if formats == "HW" or formats == "WH":
        picture, formats = picture[None], "C" + formats
    return picture.permute([formats.index(dim) for dim in wanted])
