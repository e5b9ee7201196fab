"""State, solve and certify linear programs, in floats and in rationals."""
