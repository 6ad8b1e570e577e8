"""Every block in the documents is run, in the order in which a reader meets them."""
