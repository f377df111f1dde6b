"""A policy and a source for recrawl, as an example of a plug-in package."""
