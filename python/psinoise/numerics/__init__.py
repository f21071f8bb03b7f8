"""Arithmetic and constants that production code and the NumPy twins share; imports NumPy only.

Where a kernel does the same, it does so operation for operation, so that the bits are the same.
"""
