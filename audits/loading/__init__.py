"""Where the files of a library are, and one function of it, imported alone."""
