"""The optimum of context-free pairs without their tree: time and memory are polynomial in V and L."""
