"""The multi-path optimum as a certified interval, for trees with up to a million leaves."""
