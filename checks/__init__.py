"""Checks of the dependencies: ``make check-deps``."""
