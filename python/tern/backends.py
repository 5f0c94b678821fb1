"""Switches of PyTorch's that programs set. Here they change nothing, but for the precision of matrix products on GPUs."""

import contextlib
import types

from tern import _C


class _Matmul:
    """TF32 in matrix products of float32."""

    @property
    def allow_tf32(self):
        return _C.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allow):
        _C.set_float32_matmul_precision("high" if allow else "highest")


@contextlib.contextmanager
def _context(*args, **options):
    """Changes nothing."""
    yield


_absent = {"is_available": lambda: False, "is_built": lambda: False}
cudnn = types.SimpleNamespace(enabled=True, benchmark=False, deterministic=True, allow_tf32=True, benchmark_limit=10,
                              is_available=_C.cuda_is_available, version=lambda: None, flags=_context)
cuda = types.SimpleNamespace(matmul=_Matmul(), is_built=lambda: True, sdp_kernel=_context)
for _kernel in "flash", "mem_efficient", "math", "cudnn":
    setattr(cuda, f"{_kernel}_sdp_enabled", lambda: True)
    setattr(cuda, f"enable_{_kernel}_sdp", lambda enabled: None)
mps, mkldnn, mkl, openmp = (types.SimpleNamespace(**_absent) for _ in range(4))
