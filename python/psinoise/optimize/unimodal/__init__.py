"""The unimodal law of least epsilon, by convex programs, with a certificate."""

from typing import TYPE_CHECKING

from psinoise._lazy import lazy_names

__all__ = [
    "FunctionCost",
    "IntervalCost",
    "Law",
    "PowerCost",
    "Problem",
    "UnimodalCertificate",
    "certify",
    "least_cost",
    "least_epsilon",
]

if TYPE_CHECKING:
    from psinoise.optimize.unimodal.certified import certify
    from psinoise.optimize.unimodal.cost import FunctionCost, IntervalCost, PowerCost
    from psinoise.optimize.unimodal.problem import Law, Problem, UnimodalCertificate
    from psinoise.optimize.unimodal.solve import least_cost, least_epsilon
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "psinoise.optimize.unimodal.certified": ("certify",),
            "psinoise.optimize.unimodal.cost": ("FunctionCost", "IntervalCost", "PowerCost"),
            "psinoise.optimize.unimodal.problem": ("Law", "Problem", "UnimodalCertificate"),
            "psinoise.optimize.unimodal.solve": ("least_cost", "least_epsilon"),
        },
    )
