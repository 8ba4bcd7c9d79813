"""Kerberos: a key distribution centre of MIT, and the library that logs in by it."""

import os
import subprocess
from pathlib import Path
from typing import Final

from gearpy.errors import GearpyError
from gearpy.spark.sessions.java import find_java
from tests.bench.process_cluster import free_port
from tests.servers.process import Server, says
from tests.servers.recipes import Unavailable, packages, program

_REALM: Final = "TESTS.EXAMPLE.ORG"
_LIBRARY: Final = "requests-kerberos==0.15.0"
_JAVA_MODULE: Final = "jdk.security.auth"
_READY: Final = "commencing operation"
#: What is asked for goes by TCP; names of machines are taken as they are.
_CLIENTS: Final = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {realm}
"""
_CENTRE: Final = """\
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
}}
[logging]
kdc = STDERR
"""


class Kdc:
    def __init__(self, folder: Path) -> None:
        _check_java()
        centre, self._admin, self._login = _program("krb5kdc"), _admin(), _program("kinit")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._keytabs: dict[str, Path] = {}
        facts = {"realm": _REALM, "port": free_port(), "folder": folder}
        self.config = folder / "krb5.conf"
        self.config.write_text(_CLIENTS.format(**facts))
        (folder / "kdc.conf").write_text(_CENTRE.format(**facts))
        self._env = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
        self._run(_program("kdb5_util"), "create", "-s", "-P", "tests")
        self.server = Server([centre, "-n"], folder, is_ready=says(_READY), env=self._env)

    def keytab(self, *names: str) -> Path:
        """Make principals; return a file with the keys of all of them."""
        path = self._folder / f"{names[0].replace('/', '-')}.keytab"
        for name in names:
            self._run(self._admin, "-q", f"addprinc -randkey {name}")
            self._run(self._admin, "-q", f"ktadd -norandkey -k {path} {name}")
            self._keytabs[name] = path
        return path

    def ticket(self, name: str) -> dict[str, str]:
        """Log in as a principal, made if it is new; return the environment of its programs."""
        env = self.without_ticket(name.replace("/", "-"))
        keytab = self._keytabs.get(name) or self.keytab(name)
        self._run(self._login, "-k", "-t", str(keytab), "-c", env["KRB5CCNAME"], name)
        return env

    def without_ticket(self, name: str = "nobody") -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.config), "KRB5CCNAME": f"FILE:{self._folder}/{name}.ticket"}

    @staticmethod
    def principal(name: str) -> str:
        return f"{name}@{_REALM}"

    def _run(self, *command: str) -> None:
        subprocess.run(
            command, env={**os.environ, **self._env}, check=True, capture_output=True, timeout=60
        )


def library() -> str:
    """Return the folder of the library that logs in to servers of HTTP, for ``PYTHONPATH``."""
    program("krb5-config", package="libkrb5-dev")
    return str(packages("requests-kerberos", [_LIBRARY]))


def fetch() -> None:
    _admin()
    library()


def _admin() -> str:
    return _program("kadmin.local")


def _program(name: str) -> str:
    """Return a program of MIT's Kerberos; one package of Debian brings all, starts none."""
    return program(
        name, package="krb5-admin-server", path=lambda: f"{os.environ['PATH']}:/usr/sbin"
    )


def _check_java() -> None:
    try:
        found = find_java(os.environ)
    except GearpyError as error:
        raise Unavailable(f"no Java: {error}") from error
    listed = subprocess.run(
        [found.program, "--list-modules"], capture_output=True, text=True, check=True
    )
    if _JAVA_MODULE not in listed.stdout:
        raise Unavailable(f"the Java of {found.home} lacks {_JAVA_MODULE}: install a whole one")
