"""Clients of a cluster, and the desk that answers them."""
