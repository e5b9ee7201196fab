"""Samplers as verifiers: those of users and those of libraries."""
