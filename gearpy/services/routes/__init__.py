"""The routes, by what they are about; each module has a router."""
