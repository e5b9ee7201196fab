"""One figure or table per file; ``spectheory.paper.reproduction`` finds every ``@exhibit`` here."""
