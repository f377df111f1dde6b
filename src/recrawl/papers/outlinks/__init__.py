"""Prediction of new outlinks: Dang et al. (2022), "Look back, look around" (LBLA), and its preprint."""
