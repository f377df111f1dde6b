"""Prediction of new outlinks: Dang et al., "look back, look around"."""
