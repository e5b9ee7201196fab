"""Learn the law of code that can only be called, on random numbers that we hand it."""
