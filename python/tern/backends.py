"""Switches of PyTorch's that programs set. Here they change nothing, but for the precision of matrix products on GPUs."""

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


_absent = {"is_available": lambda: False, "is_built": lambda: False}
cudnn = types.SimpleNamespace(enabled=True, benchmark=False, deterministic=True, allow_tf32=True,
                              is_available=_C.cuda_is_available, version=lambda: None)
cuda = types.SimpleNamespace(matmul=_Matmul(), is_built=lambda: True)
mps, mkldnn, openmp = (types.SimpleNamespace(**_absent) for _ in range(3))
