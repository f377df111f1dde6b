"""``python -m recrawl.cli``."""

from recrawl.cli import main

if __name__ == "__main__":
    main()
