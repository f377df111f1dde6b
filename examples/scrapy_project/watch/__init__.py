"""A small Scrapy project that recrawl tells which pages to fetch first."""
