"""Whether series over rounds move alike: the kernels that related pages and experts share, and the search for pages by them."""
