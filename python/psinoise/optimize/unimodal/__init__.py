"""The unimodal law of least epsilon, by convex programs, with a certificate."""

from psinoise.optimize.unimodal.problem import Law, Problem, UnimodalCertificate
from psinoise.optimize.unimodal.solve import certify, least_cost, least_epsilon

__all__ = [
    "Law",
    "Problem",
    "UnimodalCertificate",
    "certify",
    "least_cost",
    "least_epsilon",
]
