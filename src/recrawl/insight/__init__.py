"""What can be known of a page: vectors, related pages, links, rates, hints, targets, features."""
