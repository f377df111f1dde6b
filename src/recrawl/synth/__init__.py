"""A made-up web with the statistics of the papers, of any size; equal settings make equal webs.

`batches` makes rows for a history, `visits` and `html_pages` give the same web as records, `write_jsonl` and `write_warc` as files.
`behaviour` explains the model; `living` serves such a web over HTTP.
"""

from recrawl.synth.records import html_pages, visits
from recrawl.synth.settings import Activity, SynthSettings
from recrawl.synth.tables import batches
from recrawl.synth.write import write_jsonl, write_warc

__all__ = ["Activity", "SynthSettings", "batches", "html_pages", "visits", "write_jsonl", "write_warc"]
