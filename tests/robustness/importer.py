"""``recrawl import`` with commits after every few visits, so that there is much to be interrupted.

Usage: python importer.py VISITS_PER_COMMIT ARGUMENTS…
"""

import sys

import recrawl.history.ingest
from recrawl.cli import main

if __name__ == "__main__":
    recrawl.history.ingest.COMMIT_VISITS = int(sys.argv[1])
    sys.argv = ["recrawl", "import", *sys.argv[2:]]
    main()
