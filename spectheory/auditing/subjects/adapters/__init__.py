"""How the samplers of released libraries are reached: one file per library."""
