"""Download what the servers of tests need, where it is not in the cache yet.

``python -m tests.servers long`` downloads what only long tests need, too.
"""

import sys

from tests.servers import (
    azure,
    checker,
    gcs,
    hdfs,
    kafka,
    kerberos,
    mariadb,
    postgres,
    programs,
    registry,
    s3,
    yarn,
)
from tests.servers.recipes import Unavailable


def main() -> None:
    """Fetch everything; what cannot be had is named, and its tests will be skipped."""
    servers = [kafka.fetch, postgres.fetch, mariadb.fetch, hdfs.fetch, s3.fetch, checker.checker]
    if "long" in sys.argv:
        servers += [lambda: kafka.fetch(3), registry.fetch, yarn.fetch, azure.fetch, gcs.fetch]
        servers.append(kerberos.fetch)
    for fetch in (*servers, programs.chromium, programs.prometheus):
        try:
            fetch()
        except Unavailable as error:
            sys.stderr.write(f"tests: {error}\n")


if __name__ == "__main__":
    main()
