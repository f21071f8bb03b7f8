"""Samples as Dask arrays: as many as are wanted, in blocks that any process may draw.

A block draws its elements of one stream by their numbers, so that the bytes are those of one
process and do not depend on how an array is cut::

    noise = samples(pn.Airy(mean_abs=2.0), (100_000, 10_000), rng=7, chunks=(1000, 10_000))
    noise.std().compute()

Needs ``dask`` (the extra of that name).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from psinoise import _validate
from psinoise._rng import RandomSource
from psinoise.errors import DomainError
from psinoise.noise import NoiseLaw

__all__ = ["samples"]


def samples(
    law: NoiseLaw,
    shape: int | tuple[int, ...],
    *,
    rng: RandomSource | None = None,
    chunks: Any = "auto",
    dtype: DTypeLike = np.float64,
) -> Any:
    """Independent samples of a law as a Dask array.

    Parameters
    ----------
    law : NoiseLaw
        Of each element.
    shape : int or tuple of int
        At least one axis.
    rng : None, int, sequence of int or SeedSequence
        As in :meth:`psinoise.Noise.sample`, for the array as a whole. With None each call makes
        another array, which keeps its values however often it is computed.
    chunks : optional
        As in ``dask.array``: the shape of a block. Blocks that hold whole rows are quickest.
    dtype : float64 or float32
        Of the samples.

    Returns
    -------
    dask.array.Array
        ``law.sample(shape, rng=rng, dtype=dtype)`` for any ``chunks``.

    Raises
    ------
    TypeError, ValueError
        For another ``rng``, such as a Generator, which names a new stream in each call; for a law,
        a shape or a type that `psinoise.Noise.sample` does not take.
    ImportError
        Without Dask.

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.adapters.dask import samples
    >>> noise = samples(pn.Airy(mean_abs=2.0), (1000, 30), rng=7, chunks=(100, 30))
    >>> whole = pn.Airy(mean_abs=2.0).sample((1000, 30), rng=7)
    >>> bool((noise.compute(scheduler="sync") == whole).all())
    True
    """
    import dask.array

    if not isinstance(law, NoiseLaw):
        raise TypeError(f"law must be a noise law, got {law!r}")
    if isinstance(rng, np.random.Generator | np.random.BitGenerator):
        raise TypeError(
            f"rng must be None, a whole number, a sequence of them or a SeedSequence, got {rng!r}"
        )
    # Refuses seeds, types and scales before there is an array.
    law.sample(1, rng=rng, dtype=dtype)
    seed = np.random.SeedSequence() if rng is None else rng
    sizes = tuple(
        _validate.count("shape", size)
        for size in (shape if isinstance(shape, tuple | list) else (shape,))
    )
    if not sizes:
        raise DomainError("shape must have at least one axis, got ()")
    blocks = dask.array.core.normalize_chunks(chunks, sizes, dtype=np.dtype(dtype))
    return dask.array.map_blocks(
        _block,
        chunks=blocks,
        dtype=np.dtype(dtype),
        meta=np.empty((0,) * len(sizes), dtype=dtype),
        law=law,
        shape=sizes,
        seed=seed,
    )


def _block(
    law: NoiseLaw,
    shape: tuple[int, ...],
    seed: Any,
    dtype: DTypeLike = np.float64,
    block_info: dict[Any, Any] | None = None,
) -> NDArray[Any]:
    """The elements of one block, which are runs of the stream."""
    assert block_info is not None
    place = block_info[None]
    starts = [start for start, _ in place["array-location"]]
    out = np.empty(place["chunk-shape"], dtype=place["dtype"])
    # Axes that the block holds whole: what it has of the one before them is one run.
    axis = len(shape) - 1
    while axis > 0 and out.shape[axis] == shape[axis]:
        axis -= 1
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    for index in np.ndindex(*out.shape[:axis]):
        before = sum(i * stride for i, stride in zip(index, strides[:axis], strict=True))
        law.sample(out=out[index], rng=seed, threads=1, offset=first + before)
    return out
