"""Measures for schemes of sampling: random allocation, batches of fixed size, one coin."""
