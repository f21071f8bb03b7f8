"""The figure that shows what the best law for a cost gains on the classical ones.

Theorem 3 of Alghamdi et al., "Schrodinger mechanisms" (ISIT 2023), for the costs ``|x|**p``: at
equal expected cost the ground state has the least Fisher information (theorem 2), and so the least
epsilon for many uses of small sensitivity (theorem 1 and definition 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psinoise import costs, plotting
from psinoise._progress import track
from psinoise.figures._figure import FigureData, PaperFigure
from psinoise.mechanisms import Mechanism
from psinoise.noise import Airy, Gaussian, Laplace, Noise, Schrodinger

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Float = NDArray[np.float64]

_NAME = "schrodinger-costs"
_LAWS = (Gaussian, Airy, Laplace)
_EXPONENTS = tuple(np.linspace(0.25, 6.0, 47).tolist())
# The sensitivity in standard deviations of the best law: n I s**2 is near 1.
_SENSITIVITY, _COUNT, _DELTA = 0.01, 10_000, 1e-6
# In percent: a law that is the best one would be at minus infinity on a logarithmic axis.
_LEAST, _MOST = 0.02, 500.0


def _compute(progress: bool) -> FigureData:
    """By the exponent, the relative excess of each law over the best one."""
    rows = [_excesses(p) for p in track(_EXPONENTS, _NAME, enabled=progress)]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    notes = (
        "Excess over the law of least Fisher information at equal expected cost E|X|**p = 1, "
        "relative to that law.",
        f"Epsilon at delta {_DELTA:g} for {_COUNT} uses whose sensitivity is {_SENSITIVITY:g} "
        "standard deviations of the best law, without sampling; estimates to working precision.",
        "After theorems 1 to 3 of Alghamdi et al., Schrodinger mechanisms (ISIT 2023); the figure "
        "is not in the paper.",
    )
    return FigureData({"p": np.array(_EXPONENTS), **columns}, notes)


def _excesses(p: float) -> dict[str, float]:
    best = Schrodinger(cost=costs.Power(p), mean_cost=1.0)
    sensitivity = _SENSITIVITY * best.std
    least = best.fisher_information(), _epsilon(best, sensitivity)
    row = {}
    for law in _LAWS:
        noise = law(scale=law(scale=1.0).moment(p) ** (-1.0 / p))
        row[f"{law.__name__} information"] = noise.fisher_information() / least[0] - 1.0
        row[f"{law.__name__} epsilon"] = _epsilon(noise, sensitivity) / least[1] - 1.0
    return row


def _epsilon(noise: Noise, sensitivity: float) -> float:
    return float(Mechanism(noise, sensitivity).composed(_COUNT).estimate.epsilon(_DELTA))


def _draw(data: FigureData) -> Figure:
    """Both quantities against the exponent, in percent."""
    columns = data.columns
    figure = plotting.new_figure(9.4, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    p = columns["p"]
    titles = ("Fisher information beyond the least", f"Epsilon beyond the least, {_COUNT:,} uses")
    for ax, quantity, title in zip(panels, ("information", "epsilon"), titles, strict=True):
        lines = {
            law.__name__: np.maximum(100.0 * columns[f"{law.__name__} {quantity}"], 0.1 * _LEAST)
            for law in _LAWS
        }
        plotting.plot_lines(p, lines, ax=ax, log_y=True, name=False)
        ax.set(xlim=(0.0, p[-1]), ylim=(_LEAST, _MOST), xlabel="p of the cost $|x|^p$")
        ax.set_yticks([0.1, 1.0, 10.0, 100.0], ["0.1 %", "1 %", "10 %", "100 %"])
        plotting.label_ends(ax)
        plotting.set_title(ax, title)
    figure.supxlabel(
        f"At equal $E|X|^p$; sensitivity {_SENSITIVITY:g} standard deviations of the best law, "
        f"$\\delta = 10^{{{round(np.log10(_DELTA))}}}$, no sampling",
        x=0.01,
        ha="left",
        fontsize=9,
        color=plotting.FAINT,
    )
    return figure


#: By the name that the command line uses.
FIGURES: dict[str, PaperFigure] = {
    _NAME: PaperFigure(
        "What the best law for a cost gains, by the power of the cost", _compute, _draw
    ),
}
