"""A suite that every engine can run: cases with exact laws, a judge, and harnesses in several languages."""
