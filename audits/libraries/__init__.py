"""One file per sampler of a library: its ``LIBRARY`` and its ``SUBJECTS``."""
