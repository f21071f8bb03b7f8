"""From a law to the tables that sample and evaluate it."""

from __future__ import annotations

from psinoise._backend import core
from psinoise.compile.panels import FitError, Layout, fit
from psinoise.compile.quantiles import HalfLaw, central_quantile, tail_quantile
from psinoise.compile.ziggurat import strips

__all__ = ["LAYOUT", "FitError", "HalfLaw", "Layout", "compile_law"]

# In units of a law's scale: one panel up to 1/16, then eight per octave up to 2^40.
LAYOUT = Layout(-4, 44)


def compile_law(law: HalfLaw) -> core.LawTable:
    """Compile a standardized law, symmetric and decreasing in ``|x|``, on its own panels.

    Raises
    ------
    FitError
        If the density is not smooth on a panel.
    """

    layout = law.layout

    def log_mills(t):  # type: ignore[no-untyped-def]
        values = law.log_mills(t)
        return values, 0.0 * values

    density = fit(law.log_density, layout, tolerance=2e-15)
    mills = fit(log_mills, layout, tolerance=2e-15)
    return core.LawTable(
        density,
        mills,
        tail_quantile(law, layout.limit),
        central_quantile(law),
        strips(density, mills, layout, 2048),
        strips(density, mills, layout, 512),
    )
