"""From a law to the tables that sample and evaluate it."""

from __future__ import annotations

from psinoise._backend import core
from psinoise.compile.fitted import Fitted
from psinoise.compile.panels import FitError, Float, Layout
from psinoise.compile.parts import fit_parts
from psinoise.compile.quantiles import FarTail, HalfLaw, central_quantile, tail_quantile
from psinoise.compile.ziggurat import strips
from psinoise.numerics import double_double as dd

__all__ = ["LAYOUT", "FarTail", "FitError", "HalfLaw", "Layout", "compile_law"]

# In units of a law's scale: one panel up to 1/16, then eight per octave up to 2^40.
LAYOUT = Layout(-4, 44)


def compile_law(law: HalfLaw) -> core.LawTable:
    """Compile a standardized law, symmetric and decreasing in ``|x|``, on its own panels.

    Raises
    ------
    FitError
        If the density is not smooth on some part of a panel, however short.
    """

    layout = law.layout

    def log_mills(t: Float) -> dd.Pair:
        values = law.log_mills(t)
        return values, 0.0 * values

    def depth(t: Float) -> Float:
        return -law.log_density(t)[0]

    # The kernels find a row in one table and read it in both.
    density, mills = fit_parts(
        (law.log_density, log_mills), layout, law.breaks, depth, law.fit_tolerance
    )
    if law.costly:
        fitted = Fitted(layout, density, mills, law.fit_tolerance)
        tail, center = tail_quantile(law, fitted), fitted.central_quantile()
    else:
        tail, center = tail_quantile(law, law), central_quantile(law)
    return core.LawTable(
        density,
        mills,
        tail,
        center,
        strips(density, mills, layout, 2048),
        strips(density, mills, layout, 1024),
    )
