"""What an audit concludes, and how certain it is."""
