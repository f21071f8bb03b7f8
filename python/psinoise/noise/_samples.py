"""What :meth:`psinoise.Noise.sample` is asked for, checked: shape, type, array and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from psinoise import _validate

# Below this many elements one thread is faster than waking another.
_SERIAL = 1 << 17


def shape_of(shape: object) -> int | tuple[int, ...]:
    """A shape as NumPy takes it."""
    if isinstance(shape, tuple | list):
        return tuple(_validate.count("shape", size) for size in shape)
    return _validate.count("shape", shape)


def sample_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """float64 or float32."""
    chosen = np.dtype(dtype)
    if chosen not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise TypeError(f"dtype must be float64 or float32, got {chosen}")
    return chosen


def checked_out(out: object, shape: object, dtype: DTypeLike) -> NDArray[Any]:
    """The array to fill, if it is one that kernels can fill."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array, got {type(out).__name__}")
    if out.dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise TypeError(f"out must have dtype float64 or float32, got {out.dtype}")
    if dtype is not np.float64 and np.dtype(dtype) != out.dtype:
        raise TypeError(f"out has dtype {out.dtype}, which is not the requested {np.dtype(dtype)}")
    if not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise ValueError("out must be C-contiguous, aligned and writable")
    if shape is not None and shape != ():
        wanted = shape_of(shape)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if wanted != out.shape:
            raise ValueError(f"shape must match out, whose shape is {out.shape}, got {wanted}")
    return out


def worker_count(threads: int | None, size: int) -> int:
    """Threads for that many elements; 0 is all cores."""
    if threads is None:
        return 1 if size < _SERIAL else 0
    return _validate.count("threads", threads)
