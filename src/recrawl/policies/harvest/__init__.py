"""The stock model: how many unseen links wait on each page, how soon they will be gone, and which other pages show them.

`recrawl.policies.expected_harvest` puts the parts together. `model.StockModel` holds what was learnt; `learning` adds to it,
and `prediction` says what visits would bring.
"""
