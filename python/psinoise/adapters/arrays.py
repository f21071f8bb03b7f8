"""Noise as arrays of other libraries: JAX, PyTorch, and what else has the array interface.

Arrays that can be written to take noise in place, by ``law.sample(out=array)``. Those of JAX are
immutable, and a gradient is rarely one array: `noise_like` makes an array of the same kind, of
float32 or float64 as the array is, on its device::

    noisy = jax.tree.map(lambda g: g + noise_like(law, g), gradients)

The noise is that of :meth:`psinoise.Noise.sample`, from its cryptographic stream: without ``rng``
from the operating system's entropy, each call anew.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np

from psinoise._rng import RandomSource
from psinoise._traced import refuse_while_traced
from psinoise.noise import NoiseLaw

__all__ = ["noise_like"]

_Array = TypeVar("_Array")


def noise_like(law: NoiseLaw, like: _Array, *, rng: RandomSource | None = None) -> _Array:
    """Independent samples in an array of the shape, type and device of another one.

    Parameters
    ----------
    law : NoiseLaw
        Of each element.
    like : array
        Of NumPy, JAX or PyTorch, or with ``__array_namespace__``; float32 or float64.
    rng : optional
        As in :meth:`psinoise.Noise.sample`. One seed for several arrays would give them the same
        noise: a sequence such as ``[seed, step, k]`` tells them apart.

    Returns
    -------
    array
        Of the library of ``like``; with a seed the numbers of ``law.sample(like.shape, rng=rng)``.

    Raises
    ------
    TypeError
        For another type, and while JAX or PyTorch traces, whether ``like`` is traced or not: what
        is drawn inside ``jax.jit`` would be drawn once, and be the same noise in every step.

    Examples
    --------
    >>> import numpy as np
    >>> import psinoise as pn
    >>> from psinoise.adapters.arrays import noise_like
    >>> gradient = np.zeros((2, 3), dtype=np.float32)
    >>> noise_like(pn.Gaussian(std=2.0), gradient).dtype
    dtype('float32')
    """
    refuse_while_traced()
    array: Any = like
    try:
        array.__dlpack_device__()
    except Exception:  # of the other library, of whatever kind
        raise TypeError(
            "like must be an array, and not a traced one (inside jit noise would be drawn once for "
            f"all steps), got {type(like).__name__}"
        ) from None
    made = np.empty(tuple(array.shape), dtype=str(array.dtype).removeprefix("torch."))
    law.sample(out=made, rng=rng)
    found: Any
    if isinstance(array, np.ndarray):
        found = made
    elif hasattr(array, "__array_namespace__"):
        found = array.__array_namespace__().asarray(made, device=array.device)
    elif type(array).__module__.split(".")[0] == "torch":
        found = sys.modules["torch"].from_numpy(made).to(array.device)
    else:
        raise TypeError(f"like must be an array of a known library, got {type(like).__name__}")
    return found  # type: ignore[no-any-return]
