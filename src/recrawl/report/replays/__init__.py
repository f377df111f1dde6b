"""What a replay found: ``recrawl replay --out``."""
