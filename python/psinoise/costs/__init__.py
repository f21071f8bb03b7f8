"""Costs of noise: even functions that do not decrease in ``|x|`` and grow without bound.

A cost is what :class:`psinoise.Schrodinger` makes the optimal noise for. Costs are immutable and
hashable, their ``repr`` evaluates back to them, they are callable on arrays (so that
``noise.expected_cost(cost)`` works), they add with ``+``, and :func:`maximum` takes the largest of
several. :func:`parse` reads them from text.

>>> import psinoise as pn
>>> noise = pn.Schrodinger(cost=pn.costs.Power(1.5), mean_cost=2.0)
>>> round(float(noise.expected_cost(pn.costs.Power(1.5))), 9)
2.0
"""

from __future__ import annotations

from psinoise.costs._cost import Cost, Custom, Maximum, Stretched, Sum, as_cost, maximum
from psinoise.costs._families import Log, LogCosh, Power
from psinoise.costs._parse import parse
from psinoise.costs._straight import Hinge, Huber, Piecewise

__all__ = [
    "Cost",
    "Custom",
    "Hinge",
    "Huber",
    "Log",
    "LogCosh",
    "Maximum",
    "Piecewise",
    "Power",
    "Stretched",
    "Sum",
    "as_cost",
    "maximum",
    "parse",
]
