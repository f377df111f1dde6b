"""Which known pages should a crawler fetch next? Learns from past visits where new links and changes appear."""

__version__ = "0.1.0"
