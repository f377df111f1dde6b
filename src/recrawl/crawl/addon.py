"""``ADDONS = {"recrawl.crawl.Addon": 500}``: recrawl in any Scrapy project."""

from __future__ import annotations

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from recrawl.crawl.settings import Options
from recrawl.crawl.versions import add_part
from recrawl.errors import RecrawlError


class Addon:
    """Feeds the plan to the spider, and records what comes back. It replaces nothing that the project has."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add recrawl's parts; what the project sets itself stays."""
        try:
            options = Options.from_settings(settings)
        except RecrawlError as error:
            raise NotConfigured(str(error)) from error
        if not options.enabled:
            raise NotConfigured("RECRAWL_ENABLED is off")
        from recrawl.history import History  # here, so that an add-on that is off takes no time

        try:
            History.create(options.history)
        except (RecrawlError, OSError) as error:
            raise NotConfigured(f"the history {options.history} cannot be used: {error}") from error
        _add_parts(settings, options)


def _add_parts(settings: BaseSettings, options: Options) -> None:
    """Each part in its place among Scrapy's own; why there are three that record: see `recrawl.crawl.record`."""
    from recrawl.crawl.archive import Archive
    from recrawl.crawl.conditional import Conditional
    from recrawl.crawl.keeper import Keeper
    from recrawl.crawl.record import Failures, Pages, Redirects
    from recrawl.crawl.start import PlannedStart

    middlewares: dict[type, int] = {
        Failures: 545,  # Scrapy's retries are at 550
        Pages: 585,  # refreshes at 580, unpacking at 590
        Redirects: 605,  # redirects at 600
    }
    if options.conditional:
        middlewares[Conditional] = 540  # before retries, so that every try is conditional
    if options.warc:
        middlewares[Archive] = 990  # next to the network
    for part, order in middlewares.items():
        add_part(settings, "DOWNLOADER_MIDDLEWARES", part, order)
    add_part(settings, "SPIDER_MIDDLEWARES", PlannedStart, 90)
    add_part(settings, "EXTENSIONS", Keeper, 0)
