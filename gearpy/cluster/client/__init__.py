"""Clients of a cluster, and the gateway that answers them."""
