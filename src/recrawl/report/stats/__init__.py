"""How new links arrive on the pages of a history: ``recrawl stats``."""
