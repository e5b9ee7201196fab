"""How a program is stated, solved and certified, in floats and in rationals."""
