"""The direct composer: all products of two measures, binned again."""
