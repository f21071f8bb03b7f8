"""What one use of a mechanism loses: pairs of output densities, and quadratures of their loss."""
