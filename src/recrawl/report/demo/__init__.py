"""From crawl files to a plan on a made-up web: ``recrawl demo``."""
