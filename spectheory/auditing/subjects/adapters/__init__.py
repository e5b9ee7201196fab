"""Adapters that call the samplers of released libraries: one file per library."""
