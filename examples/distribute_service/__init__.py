"""A service that runs on every machine of a cluster: the application, and the service itself."""
