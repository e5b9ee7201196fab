"""What a sampler is tested on: pairs, batches and repeated calls."""
