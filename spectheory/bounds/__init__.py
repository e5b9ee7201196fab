"""What can be said of the optimum without a solver: tree passes, level sets, skewed drafts, dual scores."""
