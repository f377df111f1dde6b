"""``ADDONS = {"recrawl.crawl.Addon": 500}``: recrawl in any Scrapy project."""

from __future__ import annotations

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from recrawl.crawl.follow_options import NEW
from recrawl.crawl.judging import judge_of
from recrawl.crawl.settings import CrawlOptions
from recrawl.crawl.versions import add_component
from recrawl.errors import RecrawlError


class Addon:
    """Scrapy add-on that feeds the plan to the spider and records the visits. It replaces no component of the project."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add recrawl's components. What the project sets itself stays."""
        try:
            options = CrawlOptions.from_settings(settings)
        except RecrawlError as error:
            raise NotConfigured(str(error)) from error
        if not options.enabled:
            raise NotConfigured("RECRAWL_ENABLED is off")
        from recrawl.history import History  # imported here, so that a disabled add-on costs no time

        try:
            History.create(options.history)
        except (RecrawlError, OSError) as error:
            raise NotConfigured(f"cannot use the history {options.history}: {error}") from error
        try:
            judge_of(options)
        except RecrawlError as error:
            raise NotConfigured(str(error)) from error
        _add_components(settings, options)


def _add_components(settings: BaseSettings, options: CrawlOptions) -> None:
    """Add each component at its place among Scrapy's own. `recrawl.crawl.record` says why three of them record."""
    from recrawl.crawl.archive import WarcMiddleware
    from recrawl.crawl.conditional import ConditionalRequests
    from recrawl.crawl.follow_new import FollowNew, KeepInScope
    from recrawl.crawl.lifecycle import SessionLifecycle
    from recrawl.crawl.record import RecordFailures, RecordPages, RecordRedirects
    from recrawl.crawl.start import PlannedStart

    middlewares: dict[type, int] = {
        RecordFailures: 545,  # Scrapy's retries are at 550
        RecordPages: 585,  # meta refreshes at 580, decompression at 590
        RecordRedirects: 605,  # redirects at 600
    }
    if options.conditional:
        middlewares[ConditionalRequests] = 540  # before retries, so that every attempt is conditional
    if options.follow == NEW:
        middlewares[KeepInScope] = 90  # before robots.txt of another site is read
    if options.warc:
        middlewares[WarcMiddleware] = 990  # next to the network
    for component, order in middlewares.items():
        add_component(settings, "DOWNLOADER_MIDDLEWARES", component, order)
    add_component(settings, "SPIDER_MIDDLEWARES", PlannedStart, 90)
    add_component(settings, "EXTENSIONS", SessionLifecycle, 0)
    if options.follow == NEW:
        add_component(settings, "EXTENSIONS", FollowNew, 0)
