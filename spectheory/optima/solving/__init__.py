"""State, solve and certify a program, in floats and in rationals."""
