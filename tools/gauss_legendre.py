"""Write the Gauss-Legendre rule that laws and their compiler use.

The rule is a committed constant because the tables of a law, and with them every sample, must be
the same bits on every machine; ``numpy.polynomial.legendre.leggauss`` goes through LAPACK.

Usage: ``python tools/gauss_legendre.py [--check]`` (needs mpmath; running it again changes nothing;
``--check`` exits with status 1 if the committed file differs).
"""

from __future__ import annotations

import sys
from pathlib import Path

import mpmath

ORDER = 20
TARGET = Path(__file__).parents[1] / "python/psinoise/numerics/gauss_legendre.py"


def rule(order: int) -> list[tuple[float, float]]:
    """Nodes and weights on [-1, 1], correctly rounded."""
    mpmath.mp.dps = 50
    pairs = []
    for k in range(1, order + 1):
        x = mpmath.cos(mpmath.pi * (k - mpmath.mpf(1) / 4) / (order + mpmath.mpf(1) / 2))
        for _ in range(8):  # Newton doubles the digits: 3 at the start, 50 after five steps
            value = mpmath.legendre(order, x)
            slope = order * (x * value - mpmath.legendre(order - 1, x)) / (x * x - 1)
            x -= value / slope
        pairs.append((float(x), float(2 / ((1 - x * x) * slope * slope))))
    return sorted(pairs)


def main() -> None:
    lines = [
        '"""Gauss-Legendre rule of order 20 on [-1, 1]; written by tools/gauss_legendre.py."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    pairs = rule(ORDER)
    for name, index in (("NODES", 0), ("WEIGHTS", 1)):
        lines.append(f"{name} = (")
        lines += [f'    float.fromhex("{pair[index].hex()}"),' for pair in pairs]
        lines.append(")")
    text = "\n".join(lines) + "\n"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET} is not what this script writes")
    TARGET.write_text(text)
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
