"""What each part of expected-harvest contributes: ``recrawl experiments harvest``."""
