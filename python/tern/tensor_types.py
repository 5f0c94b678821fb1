"""Tensor classes of earlier years: torch.FloatTensor(2, 3) and its kin, of which `isinstance` tells a tensor's dtype and place."""

from tern import _C
from tern._types import Size


class _TensorType(type):
    """The class of these classes: what they make are tensors, and tensors of their dtype and place are theirs."""

    def __call__(cls, *sizes, device=None):
        """Of numbers or a sequence a tensor of them, of sizes one that is not filled, of nothing an empty one."""
        options = {"dtype": cls.dtype, "device": cls.place if device is None else device}
        if len(sizes) == 1 and not isinstance(sizes[0], int):
            data = sizes[0]
            return _C.empty(data, **options) if isinstance(data, Size) else _C.tensor(data, **options)
        return _C.empty(sizes if sizes else 0, **options)

    def __instancecheck__(cls, tensor):
        return isinstance(tensor, _C.Tensor) and tensor.dtype == cls.dtype and tensor.device.type == cls.place

    def __repr__(cls):
        return f"<class 'torch.{'cuda.' if cls.place == 'cuda' else ''}{cls.__name__}'>"


def types_of(place):
    """The classes of that device by their names."""
    dtypes = {"Float": _C.float32, "Double": _C.float64, "Half": _C.float16, "BFloat16": _C.bfloat16, "Byte": _C.uint8, "Char": _C.int8,
              "Short": _C.int16, "Int": _C.int32, "Long": _C.int64, "Bool": _C.bool}
    return {f"{name}Tensor": _TensorType(f"{name}Tensor", (), {"dtype": dtype, "place": place}) for name, dtype in dtypes.items()}
