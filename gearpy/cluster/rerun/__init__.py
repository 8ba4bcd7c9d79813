"""A task of an application of a cluster, run once more in this process."""
