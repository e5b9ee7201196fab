"""Verifiers that select one of several drafts and block-verify it against the law of the selection."""
