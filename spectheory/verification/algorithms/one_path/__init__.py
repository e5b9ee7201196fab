"""Verifiers of one drafted path."""
