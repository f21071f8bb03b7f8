"""Finite likelihood-ratio measures: how they are made of one use, and what bounds a profile."""
