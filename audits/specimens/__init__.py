"""Samplers with one mistake each, and their right partners, in all signatures."""
