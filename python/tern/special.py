"""Special functions under PyTorch's names."""

from tern import _C
from tern._C import (
    erf, erfc, exp2, expm1, log1p, log_softmax, logit, logsumexp, round, sigmoid as expit, sinc, softmax, xlogy)

globals().update({name: value for name, value in vars(_C._special).items() if not name.startswith("_")})
