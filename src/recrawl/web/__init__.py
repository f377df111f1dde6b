"""What a page is: visit records, URLs, HTML, terms, shingles."""
