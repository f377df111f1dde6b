"""The stock of unseen links: how many links wait on each page, how soon they will be gone, and who else shows them.

`recrawl.policies.expected_harvest` puts the parts together.
"""
