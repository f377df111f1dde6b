"""The names that options are checked against, without the code behind them, which takes a while to load."""

from __future__ import annotations

from recrawl.web.link_kinds import LINKS as LINKS
from recrawl.web.link_kinds import LinkKind as LinkKind

FEATURE_SETS = ("look-back-look-around", "summaries", "everything", "static", "default")  #: see `insight.features.sets`
MAX_HISTORY = 8  #: past rounds that the papers look back
OUTLINKS, INLINKS = "outlinks", "inlinks"
TARGETS = (OUTLINKS, INLINKS)  #: whose new links are meant: those on a page, or those that lead to it on other pages
IDFS = ("log", "ratio")  #: how rare words are weighted, see `insight.vectors.Lsa`
NEIGHBOUR_SEARCHES = ("auto", "exact", "approximate")  #: how related pages can be searched for
TIME_SIMILARITIES = ("correlation", "dtw")  #: by which series of new links can be compared: see `insight.series.alike`
RELATED_BY = ("content", *TIME_SIMILARITIES)  #: what makes pages related
