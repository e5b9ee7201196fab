"""Judge code by its answers alone."""
