"""Features to predictions: learners, distributions of counts, baselines. A model never chooses pages."""
