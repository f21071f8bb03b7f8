"""Releases with given bits, for tests: nothing here protects anybody.

This is the only way to a release whose bits are known. Who knows the key can take the noise off
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise._backend import core
from psinoise.mechanisms import LatticeMechanism, Mechanism
from psinoise.release import DigitNoise, LatticeNoise

__all__ = ["integers", "replay"]


def replay(
    mechanism: Mechanism | LatticeMechanism,
    x: ArrayLike,
    key: bytes,
    *,
    out: NDArray[Any] | None = None,
    bounds: tuple[float, float] | None = None,
    threads: int | None = None,
) -> Any:
    """What ``mechanism.on_lattice().release(x)`` returns if the system gives these 32 bytes.

    Parameters
    ----------
    mechanism : Mechanism or LatticeMechanism
    x, out, bounds, threads
        As those of `psinoise.LatticeMechanism.release`.
    key : bytes of length 32

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.testing import replay
    >>> mechanism = pn.Mechanism(pn.DiscreteLaplace(epsilon=1.0))
    >>> int(replay(mechanism, 41, bytes(32)) - replay(mechanism, 40, bytes(32)))
    1
    """
    lattice = mechanism.on_lattice() if isinstance(mechanism, Mechanism) else mechanism
    return lattice._prepared(x, out, bounds, threads).draw(_checked(key))


def integers(
    noise: LatticeNoise | DigitNoise, count: int, key: bytes, *, threads: int | None = None
) -> NDArray[np.int64]:
    """The noise of the elements ``0, ..., count - 1`` of a release with a key, in cells.

    Examples
    --------
    >>> import psinoise as pn
    >>> from psinoise.release import LatticeNoise
    >>> from psinoise.testing import integers
    >>> noise = LatticeNoise.of(pn.Laplace(scale=1.0), grid=2.0**-10)
    >>> integers(noise, 1000, bytes(32)).shape
    (1000,)
    """
    drawn = np.empty(_validate.count("count", count), dtype=np.int64)
    workers = 1 if threads is None else _validate.count("threads", threads)
    core.lattice_noise(noise._table, _checked(key), 0, drawn, workers)
    return drawn


def _checked(key: object) -> bytes:
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, got {type(key).__name__}")
    if len(key) != 32:
        raise ValueError(f"key must be 32 bytes, got {len(key)}")
    return key
