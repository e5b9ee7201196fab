"""The optimum of context-free pairs without the tree of contexts: cost is polynomial in V and L."""
