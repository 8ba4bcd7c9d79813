"""Commands that are a cluster or a part of one, or set it up."""
