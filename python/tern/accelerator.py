"""Whatever there is besides the CPU: here GPUs."""

from tern import _C, cuda


def is_available():
    return _C.cuda_is_available()


def current_accelerator(check_available=False):
    """The kind of device, or None where there is none."""
    return _C.device("cuda") if is_available() else None


class device_index(cuda.device):
    """In this context the current device is that one; None changes nothing."""

    def __enter__(self):
        if self.index is not None:
            super().__enter__()

    def __exit__(self, *error):
        if self.index is not None:
            super().__exit__(*error)


device_count = _C.cuda_device_count
synchronize = cuda.synchronize
current_device_index = _C.cuda_current_device
set_device_index = _C.cuda_set_device
