"""How new links arrive on the recorded pages: ``recrawl stats``."""
