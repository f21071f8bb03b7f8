"""The composer of noise with several worst shifts, of which neighbors choose as they go."""
