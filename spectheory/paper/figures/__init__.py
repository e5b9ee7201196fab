"""One figure or table of the papers per file; ``spectheory.paper.reproduction`` lists them."""
