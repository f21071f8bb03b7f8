"""Whole numbers modulo a power of two: what secure aggregation adds up.

Protocols of secure aggregation mask messages with numbers that are uniform modulo ``2**b`` and add
up to 0, so that only the sum of the messages modulo ``2**b`` is seen. Reducing is a homomorphism of
rings: the residue of a sum is the sum of the residues. What is seen is a function of the sum of the
messages, and each residue one of its message: by post-processing no epsilon grows, for any b
(``psinoise.mechanisms.sums``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psinoise import _validate
from psinoise.errors import DomainError

__all__ = ["residues", "sum_of_residues"]

_MOST_BITS = 64


def residues(messages: ArrayLike, bits: int) -> NDArray[np.uint64]:
    """Whole numbers modulo ``2**bits``.

    Parameters
    ----------
    messages : array_like of integers
        Of any shape.
    bits : int
        From 1 to 64.

    Returns
    -------
    ndarray of uint64
        In ``[0, 2**bits)``.

    Raises
    ------
    TypeError, DomainError
        For numbers that are not integers, or bits out of range.

    Examples
    --------
    >>> from psinoise.release import residues, sum_of_residues
    >>> sent = residues([5, -9, 3], bits=8)
    >>> sent.tolist(), int(sum_of_residues(sent, bits=8))
    ([5, 247, 3], -1)
    """
    numbers = np.asarray(messages)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"messages must be integers, got dtype {numbers.dtype}")
    # Conversion to uint64 is reduction modulo 2**64.
    return numbers.astype(np.uint64) & _mask(bits)


def sum_of_residues(messages: ArrayLike, bits: int, axis: int = 0) -> NDArray[np.int64]:
    """The sum modulo ``2**bits``, as the number in ``[-2**(bits - 1), 2**(bits - 1))``.

    That is the sum itself if it lies there.

    Examples
    --------
    >>> from psinoise.release import residues, sum_of_residues
    >>> int(sum_of_residues(residues([100, 100, -250], bits=8), bits=8))
    -50

    Parameters
    ----------
    messages : array_like of integers
        What was sent, reduced or not.
    bits : int
        From 1 to 64.
    axis : int
        Along which clients are listed.

    Raises
    ------
    TypeError, DomainError
        As for `residues`.
    """
    mask = _mask(bits)
    total = np.asarray(residues(messages, bits).sum(axis=axis, dtype=np.uint64)) & mask
    half = np.uint64(1) << np.uint64(bits - 1)
    # Moved up by a half, reduced, and moved down again: all of it modulo 2**64.
    with np.errstate(over="ignore"):
        return np.asarray((((total + half) & mask) - half).astype(np.int64))


def _mask(bits: int) -> np.uint64:
    number = _validate.count("bits", bits)
    if not 1 <= number <= _MOST_BITS:
        raise DomainError(f"bits must be from 1 to {_MOST_BITS}, got {bits!r}")
    return np.uint64((1 << number) - 1)
