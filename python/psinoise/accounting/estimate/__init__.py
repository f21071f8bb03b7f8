"""Estimates: the cumulants of a composition, and integrals along a line of the complex plane."""
