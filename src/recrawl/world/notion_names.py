"""Names of notions of change that are needed without the notions themselves, which take a while to load."""

ANY = "any"  #: every difference of text or links is a change: no notion at all
