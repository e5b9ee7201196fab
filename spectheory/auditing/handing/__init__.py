"""Random numbers that are handed to code: every primitive takes its numbers from a point that we choose."""
