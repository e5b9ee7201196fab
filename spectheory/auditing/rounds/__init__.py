"""The inputs of an audit: pairs, batches and repeated calls."""
