"""Plain dicts become plots and pages; nothing here knows how the numbers were made."""
