"""Histories of pages from the Internet Archive: the only part of recrawl that asks a server on the network.

`client` is polite and patient, `index` reads the list of captures, `mementos` the pages themselves, `page_history` decides what
each capture shows, `state` remembers it all on disk, and `archive` puts them together.
"""

from recrawl.sources.wayback.archive import Archive, ArchiveReport, Delivery, ReadPage
from recrawl.sources.wayback.client import BASE_URL, Client, Clock

__all__ = ["BASE_URL", "Archive", "ArchiveReport", "Client", "Clock", "Delivery", "ReadPage"]
