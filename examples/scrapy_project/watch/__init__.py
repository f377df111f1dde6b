"""A small Scrapy project in which recrawl decides which pages to fetch first."""
