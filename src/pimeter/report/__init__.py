"""Plain dicts become pictures and pages; nothing here knows how the numbers were made."""
