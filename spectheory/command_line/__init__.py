"""The command ``spectheory``."""
