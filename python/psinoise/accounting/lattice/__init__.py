"""Bounds from either side: losses on a lattice, composed with every error bounded."""
