"""A made-up web that responds to real requests on loopback while simulated time passes."""
