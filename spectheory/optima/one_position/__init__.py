"""Optimal acceptance at one position with K drafts of one token: programs and closed forms."""
