"""Tables, figures and pages of what was found."""
