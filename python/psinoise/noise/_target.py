"""What a law is made for: a privacy target, and what each use may spend of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from psinoise.errors import CalibrationError

__all__ = ["PrivacyTarget"]


@dataclass(frozen=True)
class PrivacyTarget:
    """Epsilon and delta of ``count`` uses with Poisson sampling, of a query of some sensitivity."""

    epsilon: float
    delta: float
    sensitivity: float
    count: int
    sampling_rate: float

    def largest_loss(self, law: str) -> float:
        """The largest loss of one use without sampling such that those of all add up to epsilon.

        With ``e`` the largest loss of one use, that of one sampled at rate ``q`` is ``log(1 - q +
        q exp(e))`` in the direction "remove", and less in the direction "add", since
        ``(1 - q + q exp(e)) (1 - q + q exp(-e)) >= 1``.

        Raises
        ------
        CalibrationError
            For epsilon = 0, and for a delta of more than one use: there such a law would do, but
            not be the least, since losses that add up so are rare.
        """
        if self.epsilon == 0.0:
            raise CalibrationError(f"{law} noise is made for epsilon above 0")
        if self.delta > 0.0 and (self.count > 1 or self.sampling_rate < 1.0):
            raise CalibrationError(f"{law} noise is made for delta = 0, or for one use")
        each, rate = self.epsilon / self.count, self.sampling_rate
        if rate == 1.0:
            return each
        if each > 1.0:
            return each - math.log(rate) + math.log1p((rate - 1.0) * math.exp(-each))
        return math.log1p(math.expm1(each) / rate)
