"""Programs and closed forms at one position, with K drafts of one token."""
