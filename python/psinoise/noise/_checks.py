"""Checks of what the methods of every law are given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from psinoise import _validate
from psinoise._traced import refuse_while_traced
from psinoise.errors import DomainError

Float = NDArray[np.float64]

# Below this many elements one thread is faster than waking another.
SERIAL = 1 << 17
# Of moments: its logarithm, and that of the power of a length, are float64.
_LARGEST_ORDER = 1e300
# Elements of a stream are numbered up to here.
_ELEMENTS = 1 << 62
# Light tails of a scale up to here are no more than that beyond float64; beyond float32 are none
# of a scale that float32 samples may have.
WIDE = 2.0**1000
# Draws of a type that would be infinite more often than this are refused: no sample may be infinite
# where the law has no mass there.
_OVERFLOW = 2.0**-64
_SAMPLED = (np.dtype(np.float64), np.dtype(np.float32))
LEAST_FLOAT32, _LEAST_FLOAT64 = 2.0**-126, 2.0**-1022


def real_array(name: str, values: ArrayLike) -> Float:
    """Real numbers as contiguous float64, of the shape they came in."""
    return points(name, values).astype(np.float64, copy=False)


def points(name: str, values: ArrayLike) -> NDArray[Any]:
    """Real numbers as contiguous float64, or float32 where they are, of the shape they came in."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        return values  # most calls
    if np.ma.is_masked(values):
        raise TypeError(f"{name} must not be masked")
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError(f"{name} must be a rectangular array of real numbers") from None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)


def cost_values(cost: Callable[[Float], ArrayLike], x: Float) -> Float:
    """Values of a user's cost function, checked."""
    values = real_array("cost(x)", cost(x))
    if values.shape != x.shape:
        raise TypeError(f"cost(x) must have the shape of x, {x.shape}, got {values.shape}")
    if np.isnan(values).any():
        raise DomainError(f"cost must not be NaN, got NaN at x = {x[np.isnan(values)][0]!r}")
    return values


def moment_order(order: object) -> float:
    """Of an absolute moment."""
    power = _validate.real("order", order)
    if not (0.0 <= power < math.inf):
        raise DomainError(f"order must be at least 0 and finite, got {order!r}")
    if power > _LARGEST_ORDER:
        raise DomainError(f"order must be at most {_LARGEST_ORDER!r}, got {order!r}")
    return power


def _shape_of(shape: object) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_validate.count("shape", size) for size in sizes)


def _sample_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        chosen = np.dtype(dtype)
    except (TypeError, DeprecationWarning):  # "a" is a type that NumPy warns of
        raise TypeError(f"dtype must be float64 or float32, got {dtype!r}") from None
    if chosen not in _SAMPLED:
        raise TypeError(f"dtype must be float64 or float32, got {chosen}")
    return chosen


def output(shape: object, dtype: DTypeLike, out: object) -> NDArray[Any]:
    """The array that samples are written to: a new one, or the memory of ``out``."""
    if out is not None:
        return _checked_out(out, shape, dtype)
    chosen = _sample_dtype(dtype)
    wanted = () if shape is None else _shape_of(shape)
    try:
        return np.empty(wanted, dtype=chosen)
    except ValueError:  # of more bytes than there are addresses
        raise DomainError(f"shape must be of fewer elements, got {shape!r}") from None


def results(x: NDArray[Any], out: object) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points, apart from the memory of their results, and the array for these."""
    if out is None:
        return x, np.empty(x.shape)
    found = _checked_out(out, None, np.float64)
    if found.shape != x.shape:
        raise ValueError(f"out must have the shape of the points, {x.shape}, got {found.shape}")
    return (x.copy() if np.may_share_memory(x, found) else x), found


def first_element(offset: object, size: int) -> int:
    """The element of a stream to begin with, all of which can be numbered."""
    first = _validate.count("offset", offset)
    if first + size > _ELEMENTS:
        raise DomainError(f"offset must leave room for {size} elements below 2**62, got {first}")
    return first


def _memory_of(out: Any) -> NDArray[Any]:
    """The memory of an array as NumPy's: nothing is copied, and what is read-only stays so.

    TypeError if it has none here that others may write to: of another device, or whose gradient is
    recorded; and while operations on it are, since the writing would not be.
    """
    if isinstance(out, np.ndarray):
        return out
    refuse_while_traced()
    try:
        if hasattr(out, "__dlpack__"):
            return np.from_dlpack(out)
        return np.asarray(memoryview(out))
    except Exception as error:  # of the other library, of whatever kind
        raise TypeError(f"out must be an array, got {type(out).__name__}: {error}") from None


def _checked_out(out: object, shape: object, dtype: DTypeLike) -> NDArray[Any]:
    out = _memory_of(out)
    if out.dtype not in _SAMPLED:
        raise TypeError(f"out must have dtype float64 or float32, got {out.dtype}")
    if dtype is not np.float64 and np.dtype(dtype) != out.dtype:
        raise TypeError(f"out has dtype {out.dtype}, which is not the requested {np.dtype(dtype)}")
    if not out.flags.carray:  # all three, at a third of the time
        raise ValueError("out must be C-contiguous, aligned and writable")
    if shape is not None and shape != () and not (type(shape) is int and out.shape == (shape,)):
        wanted = _shape_of(shape)
        if wanted != out.shape:
            raise ValueError(f"shape must match out, whose shape is {out.shape}, got {wanted}")
    return out


def worker_count(threads: int | None, size: int) -> int:
    """Threads as the kernels count them: 0 is every core."""
    if threads is None:
        return 1 if size < SERIAL else 0
    return _validate.count("threads", threads)


def overflow(law: Any, dtype: DTypeLike) -> float:
    """The probability of a draw beyond the largest number of a type."""
    return 2.0 * float(law.ccdf(float(np.finfo(dtype).max)))


def wide_enough(law: object, dtype: np.dtype[Any], probability: float | None = None) -> None:
    """Refuse a type whose largest number draws exceed with a probability that is not negligible."""
    probability = overflow(law, dtype) if probability is None else probability
    if not probability <= _OVERFLOW:
        raise DomainError(
            f"dtype must be wider for {law!r}, draws of which exceed the largest {dtype} with "
            f"probability {probability:.1e}"
        )


def length(name: str, value: object) -> float:
    """The length of a shift in either direction; finite."""
    found = abs(_validate.real(name, value))
    if found == math.inf:
        raise DomainError(f"{name} must be finite, got {value!r}")
    return found


def fine_enough(law: object, dtype: np.dtype[Any], size: float) -> None:
    """Refuse a type below whose normal numbers the usual size of draws is: many would be 0."""
    if not size >= (LEAST_FLOAT32 if dtype.itemsize == 4 else _LEAST_FLOAT64):
        wanted = "dtype must be float64" if dtype.itemsize == 4 else "sensitivity must be larger"
        raise DomainError(
            f"{wanted} for {law!r}, half of the draws of which are below the normal numbers of "
            f"{dtype}"
        )
