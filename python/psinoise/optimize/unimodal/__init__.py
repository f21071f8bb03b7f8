"""The unimodal law of least epsilon, by convex programs, with a certificate."""

from psinoise.optimize.unimodal.cost import FunctionCost, IntervalCost, PowerCost
from psinoise.optimize.unimodal.problem import Law, Problem, UnimodalCertificate
from psinoise.optimize.unimodal.solve import certify, least_cost, least_epsilon

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
