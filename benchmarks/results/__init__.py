"""Scripts that print the tables of the documentation's results."""
