"""Composition of likelihood-ratio measures: three composers and the table that orders them."""
