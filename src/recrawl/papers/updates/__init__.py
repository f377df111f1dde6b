"""History-aware scheduling from web archives: rates of updates and how well they predict."""
