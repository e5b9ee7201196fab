"""Errors, checks of arguments, numbers, arrays and results: what every room stands on."""
