"""Related pages as experts on content change: Radinsky and Bennett (2013)."""
