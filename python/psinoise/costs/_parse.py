"""Costs from text, for command lines and configuration files."""

from __future__ import annotations

import re
from collections.abc import Callable

from psinoise.costs._cost import Cost, Maximum, Sum
from psinoise.costs._families import Log, LogCosh, Power
from psinoise.costs._straight import Hinge, Huber, Piecewise
from psinoise.errors import DomainError

_NAMED: dict[str, Callable[..., Cost]] = {
    "power": Power,
    "log": Log,
    "logcosh": LogCosh,
    "huber": Huber,
    "hinge": Hinge,
}
_LEAST_NUMBERS = {"power": 1, "log": 0, "logcosh": 0, "huber": 1, "hinge": 1}
_MOST_NUMBERS = 2
_WORD, _NUMBER, _SIGN = 1, 2, 3
# A sign only within an exponent: "+" stands between costs, and no parameter is negative.
_TOKEN = re.compile(r"\s*(?:([A-Za-z]+)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(\S))", re.ASCII)
# Sums within maxima within sums are flat beyond two levels for every cost that means something.
_DEEPEST = 16


def parse(text: str) -> Cost:
    """The cost that a text describes; nothing is evaluated.

    Parameters
    ----------
    text : str
        ``power:p``, ``log:power``, ``logcosh:scale``, ``huber:threshold`` or ``hinge:start``, each
        with an optional ``:weight`` after that number (which ``log`` and ``logcosh`` may do
        without); ``piecewise(x:cost, x:cost, ...)`` from ``0:0``; sums of costs with ``+``;
        ``max(cost, cost, ...)``.

    Returns
    -------
    Cost

    Raises
    ------
    TypeError
        If ``text`` is not a string.
    DomainError
        If it does not describe a cost; the message says what was expected where. If a number is
        outside the range of its cost.

    Examples
    --------
    >>> from psinoise import costs
    >>> costs.parse("power:1.5")
    costs.Power(1.5)
    >>> costs.parse("max(power:1, power:2:0.5) + log:2")
    costs.Sum(costs.Maximum(costs.Power(1.0), costs.Power(2.0, weight=0.5)), costs.Log(2.0))
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    return _Reader(text).whole()


class _Reader:
    """Recursive descent, one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text.rstrip()))
        self._next = 0

    def whole(self) -> Cost:
        cost = self._sum(0)
        if self._next < len(self._tokens):
            raise self._unexpected("+ or the end")
        return cost

    def _sum(self, depth: int) -> Cost:
        terms = [self._term(depth)]
        while self._skip("+"):
            terms.append(self._term(depth))
        return Sum(*terms) if len(terms) > 1 else terms[0]

    def _term(self, depth: int) -> Cost:
        name = self._peek(_WORD)
        if name not in ("max", "piecewise") and name not in _NAMED:
            raise self._unexpected(f"{', '.join(_NAMED)}, piecewise or max")
        self._next += 1
        if name == "max":
            return self._maximum(depth + 1)
        if name == "piecewise":
            return self._piecewise()
        numbers: list[float] = []
        while len(numbers) < _MOST_NUMBERS and self._skip(":"):
            numbers.append(self._number())
        if len(numbers) < _LEAST_NUMBERS[name]:
            raise self._unexpected(": and a number")
        return _NAMED[name](*numbers)

    def _maximum(self, depth: int) -> Cost:
        if depth > _DEEPEST:
            raise DomainError(f"cost must have at most {_DEEPEST} levels of max")
        self._expect("(")
        terms = [self._sum(depth)]
        while self._skip(","):
            terms.append(self._sum(depth))
        self._expect(")")
        return Maximum(*terms)

    def _piecewise(self) -> Cost:
        self._expect("(")
        points = [self._point()]
        while self._skip(","):
            points.append(self._point())
        self._expect(")")
        return Piecewise(points)

    def _point(self) -> tuple[float, float]:
        x = self._number()
        self._expect(":")
        return x, self._number()

    def _number(self) -> float:
        number = self._peek(_NUMBER)
        if not number:
            raise self._unexpected("a positive number")
        self._next += 1
        return float(number)

    def _peek(self, kind: int) -> str:
        """The next token if it is of that kind."""
        if self._next == len(self._tokens):
            return ""
        return self._tokens[self._next][kind] or ""

    def _skip(self, sign: str) -> bool:
        found = self._peek(_SIGN) == sign
        self._next += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self._unexpected(f"{sign!r}")

    def _unexpected(self, wanted: str) -> DomainError:
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            found = repr(self._text[token.start(token.lastindex or 0) :])
        else:
            found = "the end"
        return DomainError(f"cost must have {wanted} instead of {found}, got {self._text!r}")
