"""What ``scrapy startproject`` writes, a pipeline, a feed, and one line for recrawl."""

BOT_NAME = "watch"
SPIDER_MODULES = ["watch.spiders"]
NEWSPIDER_MODULE = "watch.spiders"

# Who fetches, and how to reach you. Put your own page here.
USER_AGENT = "watch/1.0 (+https://example.org/bot)"

# The add-on leaves these as they are: how polite a crawl is remains the project's decision.
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1

ITEM_PIPELINES = {"watch.pipelines.OncePerPage": 300}
FEEDS = {"pages.jsonl": {"format": "jsonlines", "overwrite": True}}

ADDONS = {"recrawl.crawl.Addon": 500}
