"""Exact laws of samplers that other people wrote: their random numbers are replaced, their code is not."""
