"""Figures: one module per benchmark, one JSON object per line; nothing here is a test, no figure is asserted."""
