"""The papers' own experiments, tables and figures."""
