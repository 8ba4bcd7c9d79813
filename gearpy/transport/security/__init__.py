"""The right to connect: secrets, certificates, TLS.

- `certificates`: makes the certificates of a cluster: its own authority, and one for each machine;
  ADR 0005.
- `credentials`: what a process shows to its peers, and what it demands of them.
- `secret`: files that only their owner may read, such as that with the secret that the processes
  of a cluster share.
- `start_token`: the token that services make at each start, for other programs of their user.
- `tokens`: the file with the tokens of those who look at a cluster by HTTP.
- `tls`: TLS 1.3 with certificates of the cluster's own authority, on both ends; see ADR 0005.
"""
