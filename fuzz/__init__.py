"""Fuzzing of everything that reads what others wrote: ``make fuzz MINUTES=5``.

Inputs are mutations of small samples (`seeds`), with words of the formats; those that reach new lines of recrawl are mutated
further (`reached`), so no compiler support is needed. A finding is an exception that is not recrawl's own, a result that breaks a
promise, or more time or memory than an input of its size may take. It is saved in ``build/fuzz``, with the line that repeats it.
"""
