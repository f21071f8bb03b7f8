"""The composer on a lattice: tilted Fourier sums, with bounds of all that they miss."""
