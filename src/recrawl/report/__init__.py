"""Reports: tables, figures and HTML pages of results, for an operator."""
