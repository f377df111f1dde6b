"""The tests of the features share made-up panels and the slow version with the benchmarks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))  # for the package `benchmarks`
