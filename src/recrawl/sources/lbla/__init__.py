"""The data of Dang et al. (2022), "Look back, look around" (LBLA): their table of pages, and the crawls it was made from."""

from recrawl.sources.lbla.crawls import LblaCrawls
from recrawl.sources.lbla.table import Lbla

__all__ = ["Lbla", "LblaCrawls"]
