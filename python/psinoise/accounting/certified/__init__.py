"""Brackets of epsilon and delta: where to look, how fine, and the width verified."""
