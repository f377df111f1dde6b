"""A made-up web that answers real requests on loopback while its clock goes on."""
