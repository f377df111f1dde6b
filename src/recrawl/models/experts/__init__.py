"""Experts: classifiers that observe a page, or one related to it, and vote on whether the page is about to change."""
