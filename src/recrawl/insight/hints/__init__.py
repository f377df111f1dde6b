"""What sitemaps and feeds say of pages, and how often that was true."""
