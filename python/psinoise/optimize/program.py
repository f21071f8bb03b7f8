"""The convex program of the cactus mechanism: divergences, derivatives, and the matrix of Newton.

Unknown are the masses ``p_0, ..., p_N`` of cells of width ``1 / n`` around ``0, 1 / n, ...``; the
law is symmetric, and beyond cell ``N`` the masses go on as ``p_N r, p_N r**2, ...`` without end.
Everything is written in terms of the relative change ``u = dp / p``: the Hessian of a divergence
then has entries of the size of the masses, also where these are 1e-30.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psinoise.optimize.cells import CellProgram, Float

Shifts = NDArray[np.intp]

__all__ = ["Float", "Program", "Shifts", "weighted"]


def weighted(weights: Float, rows: Float) -> Float:
    """A weighted sum of rows, without a library that would start threads for it."""
    return np.asarray(np.einsum("k,ki->i", weights, rows))


@dataclass(frozen=True, eq=False)
class Program(CellProgram):
    """Program (20) of Alghamdi et al., "Cactus mechanisms", theorem 2.

    Parameters
    ----------
    mean_cost : float
        Bound of the expected cost.
    """

    mean_cost: float

    @property
    def all_shifts(self) -> Shifts:
        """``1, ..., n``, which suffice by theorem 2: between them the divergence is linear."""
        return np.arange(1, self.width + 1)

    def divergences(self, p: Float, shifts: Shifts) -> Float:
        """``KL_k(p)``, the divergence of the law from itself moved by ``k`` cells."""
        logs = np.log(p)
        return np.array([self._divergence(p, logs, int(k)) for k in shifts])

    def _divergence(self, p: Float, logs: Float, k: int) -> float:
        last = self.last
        # By symmetry the halved sum over all cells is one over i >= 0, plus the pairs of cells on
        # either side of the origin, (-a, k - a), each of which comes twice.
        near = np.sum((p[: last - k] - p[k:last]) * (logs[: last - k] - logs[k:last]))
        a = np.arange(1, (k + 1) // 2)
        across = np.sum((p[a] - p[k - a]) * (logs[a] - logs[k - a]))
        far_p, far_logs = self._tail(p, logs, k)
        far = np.sum((p[last - k : last] - far_p) * (logs[last - k : last] - far_logs))
        return float(near + across + far + p[last] * self._tail_rate(k))

    def _tail(self, p: Float, logs: Float, k: int) -> tuple[Float, Float]:
        """Masses and logarithms of the tail cells that cells ``N - k, ..., N - 1`` meet."""
        powers = np.arange(k)
        decay = np.log(self.tail_ratio)
        return p[-1] * np.exp(powers * decay), logs[-1] + powers * decay

    def _tail_rate(self, k: int) -> float:
        r = self.tail_ratio
        return float((1.0 - r**k) / (1.0 - r) * k * -np.log(r))

    def derivatives(self, p: Float, shifts: Shifts) -> tuple[Float, Float]:
        """``KL_k(p)``, and ``p_i dKL_k / dp_i`` as one row for each shift."""
        logs = np.log(p)
        last = self.last
        values = np.empty(shifts.size)
        gradients = np.zeros((shifts.size, p.size))
        for row, k in enumerate(shifts):
            gradient = gradients[row]
            loss = logs[: last - k] - logs[k:last]
            difference = p[: last - k] - p[k:last]
            gradient[: last - k] += loss * p[: last - k] + difference
            gradient[k:last] -= loss * p[k:last] + difference
            a = np.arange(1, (k + 1) // 2)
            loss, difference = logs[a] - logs[k - a], p[a] - p[k - a]
            gradient[a] += loss * p[a] + difference
            gradient[k - a] -= loss * p[k - a] + difference
            far_p, far_logs = self._tail(p, logs, int(k))
            loss, difference = logs[last - k : last] - far_logs, p[last - k : last] - far_p
            gradient[last - k : last] += loss * p[last - k : last] + difference
            gradient[last] += p[last] * self._tail_rate(int(k)) - (loss * far_p + difference).sum()
            # Homogeneous of degree 1: by Euler's identity the gradient gives the value.
            values[row] = gradient.sum()
        return values, gradients

    def hessian_band(self, p: Float, shifts: Shifts, weights: Float) -> Float:
        """``A = sum_k weights[k] diag(p) KL_k'' diag(p)``, a band of ``n`` subdiagonals.

        It is the Laplacian of a graph: the edge between cells of masses u and v has weight
        ``u + v``. The order of cells is reversed, so that Cholesky's method eliminates the small
        masses first: no pivot is then lost to cancellation. Row ``j`` of the result is
        ``A[j, j], A[j + 1, j], ...`` in that order.
        """
        last = self.last
        band = np.zeros((p.size, self.width + 1))
        diagonal = np.zeros(p.size)
        for k, weight in zip(shifts, weights, strict=True):
            edge = weight * (p[: last - k] + p[k:last])
            diagonal[: last - k] += edge
            diagonal[k:last] += edge
            band[1 : last - k + 1, k] -= edge[::-1]
            a = np.arange(1, (k + 1) // 2)
            edge = weight * (p[a] + p[k - a])
            diagonal[a] += edge
            diagonal[k - a] += edge
            band[last - k + a, k - 2 * a] -= edge
            far_p = p[-1] * self.tail_ratio ** np.arange(k)
            edge = weight * (p[last - k : last] + far_p)
            diagonal[last - k : last] += edge
            diagonal[last] += edge.sum()
            band[0, k - np.arange(k)] -= edge
        band[:, 0] += diagonal[::-1]
        return band
