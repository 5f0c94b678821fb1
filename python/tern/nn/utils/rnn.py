"""Sequences of unequal lengths: padded, and packed for recurrent layers."""

from tern._C import (  # noqa: F401
    PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence, unpack_sequence)
