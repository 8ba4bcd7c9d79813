"""The right to connect: secrets, certificates, TLS."""
