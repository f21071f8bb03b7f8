"""What type checkers and editors see of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

# Lines with "# wrong" are natural mistakes; the others are what was meant.
PROGRAM = """
import numpy as np
import psinoise as pn

noise = pn.Gaussian(std=2.0)
pn.Gaussian(stdd=2.0)  # wrong: the name
pn.Gaussian(2.0)  # wrong: without a name
pn.Airy(mean_abs="2")  # wrong: text
pn.SymmetricStable(alpha=1.5, scale=1.0)
pn.SymmetricStable(alpha=1.5, size=1.0)  # wrong: the name
pn.Cauchy(scale=1.0)
pn.Cauchy(std=1.0)  # wrong: there is none
pn.Schrodinger(cost=pn.costs.Power(2.0), theta=1.0)
pn.Schrodinger(cost=pn.costs.Power(2.0), mean=1.0)  # wrong: the name
pn.Staircase(epsilon=1.0)
pn.Staircase()  # wrong: for which target?
pn.DiscreteLaplace(epsilon=1.0, sensitivity=3)
pn.DiscreteLaplace(epsilon=1.0, sensitivity=0.5)  # wrong: no whole number

mechanism = pn.Mechanism(noise, sensitivity=0.5)
pn.Mechanism(pn.Gaussian)  # wrong: a class
pn.Mechanism(2.0)  # wrong: a size
epsilon: float = mechanism.epsilon(1e-6, count=100, sampling_rate=0.01)
mechanism.epsilon()  # wrong: at which delta?
mechanism.epsilon(1e-6, count=1.5)  # wrong: no whole number
noise.survival(1.0)  # wrong: here it is ccdf
noise.ccdf(np.linspace(0.0, 1.0, 5))
pn.calibrate(pn.Airy, epsilon=1.0, delta=1e-6).mean_abs
pn.calibrate(pn.Airy, epsilon=1.0)  # wrong: at which delta?
pn.compare(mean_abs=1.0, counts=[10]).plot()
pn.compare(mean_abs=1.0, count=10)  # wrong: the name
"""


def test_natural_mistakes_are_seen(tmp_path, pytestconfig):
    """Mutant: ``**statistic: float`` as the arguments of a scale family."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program.name],
        cwd=tmp_path,
        env={**os.environ, "MYPY_CACHE_DIR": str(pytestconfig.cache.mkdir("mypy"))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    seen = {int(line) for line in re.findall(r"^program\.py:(\d+): error", done.stdout, re.M)}
    lines = PROGRAM.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    assert len(wrong) >= 10
    assert seen == wrong, done.stdout + done.stderr
