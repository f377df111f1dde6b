"""Histories of pages from web archives: apart from the crawler the only part of recrawl that asks a server on the network.

`client` is polite and patient. `interface` is how an archive is asked, with one file for each kind of server
(`internet_archive`, `pywb`, `outback`, `timemaps`); `probe` finds out which one a server is. `question` is what a user asks for,
`captures` what an index lists, `filters` what of it is wanted, `mementos` the pages themselves. `page_history` decides what each
capture shows, `state` remembers it all on disk, `archive` puts them together, and `deliveries` are what it hands over.
"""

from recrawl.sources.wayback.archive import Archive, ReadPage
from recrawl.sources.wayback.client import BASE_URL, PATIENCE, Client, Clock
from recrawl.sources.wayback.deliveries import ArchiveReport, Delivery
from recrawl.sources.wayback.filters import Filters
from recrawl.sources.wayback.probe import NAMES as INTERFACES

__all__ = [
    "BASE_URL",
    "INTERFACES",
    "PATIENCE",
    "Archive",
    "ArchiveReport",
    "Client",
    "Clock",
    "Delivery",
    "Filters",
    "ReadPage",
]
