"""The past as a crawler lived it: rounds, pages × rounds, contents, changes, and a crawler that walks it."""
