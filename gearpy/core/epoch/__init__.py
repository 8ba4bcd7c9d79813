"""Epochs of one attempt: where they end, when they are complete, which are kept."""
