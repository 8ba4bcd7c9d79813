"""Texts as people and logs may see them: without passwords, tokens and addresses of webhooks."""

import json
import re
from collections.abc import Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

_T = TypeVar("_T", str, int | str | tuple[str, ...])

HIDDEN: Final = "***"
#: Keys whose values are URLs that let whoever knows them in.
_SECRET_URLS: Final = frozenset({"alerts.webhooks"})
_VARIABLES: Final = "executor.environment"
_URL: Final = re.compile(r"https?://[^\s,\"']+")
_HOST: Final = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?")
_PASSWORD: Final = re.compile(r"(?<=://)(?P<user>[^/@:\s]*):[^/\s]*(?=@)")
#: A token, or a user that is one, stands in front of the host of a web page.
_TOKEN: Final = re.compile(r"(?P<scheme>https?://)[^/\s]+(?=@)")
_BEARER: Final = re.compile(
    r"(?i)(?P<kept>\bbearer\s+|\bauthorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?)[^\s\"']+"
)
#: A name with one of these words in it is that of a secret; `tokens` are counted.
_SECRET: Final = re.compile(
    r"(?i)passw(?:or)?d|passphrase|secret|token(?!s|i[sz])|credential|signature"
    r"|(?:api|access|account|private|encryption|shared)[_.-]?key"
    r"|(?<![a-z])(?:pwd|pass|sas|sig)(?![a-z])|(?-i:(?:Pwd|Pass|Sas|Sig)(?![a-z]))"
)
#: A name that ends so says where a secret is, or how long it lasts.
_NO_SECRET: Final = re.compile(r"(?i)(?:file|path|folder|dir|length|bytes|timeout|ttl)$")
_OPTION: Final = re.compile(r"--?(?P<name>[\w.-]+)")
_ARGUMENT: Final = re.compile(r"(?s)(?P<kept>(?:-D|-{0,2})(?P<name>[\w.-]+)=).+")
_NAMED: Final = re.compile(r"(?<![\w.-])(?P<name>[\w.-]++)[\"']?\s*[:=]\s*")
_VALUE: Final = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s&;,\"')}\]]+")


def without_password(url: str) -> str:
    """Return a URL, or a text with some, without what is in front of their hosts."""
    return _TOKEN.sub(rf"\g<scheme>{HIDDEN}", _PASSWORD.sub(r"\g<user>", url))


def host_alone(url: str) -> str:
    """Return a URL of which only the scheme and the host can be seen.

    Example:
        >>> host_alone("https://hooks.example.org/services/T0/SECRET")
        'https://hooks.example.org/***'
    """
    try:
        scheme, place, *rest = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = place.rpartition("@")[2]
    shown = host if _HOST.fullmatch(host) else HIDDEN
    return f"{scheme}://{shown}{f'/{HIDDEN}' if host != place or any(rest) else ''}"


def without_secrets(text: str) -> str:
    """Return a text without passwords in URLs, and values of what is named as a secret is.

    Example:
        >>> without_secrets("host=db password=x user=ann")
        'host=db password=*** user=ann'
    """
    shown = _BEARER.sub(rf"\g<kept>{HIDDEN}", without_password(text))
    parts, at = list[str](), 0
    for found in _NAMED.finditer(shown):
        is_secret = found.start() >= at and _is_secret(found["name"])
        if is_secret and (value := _VALUE.match(shown, found.end())):
            parts += shown[at : found.end()], HIDDEN
            at = value.end()
    return "".join([*parts, shown[at:]])


def shown_args(args: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a program without the secrets among them.

    Example:
        >>> shown_args(["--password=x", "--token", "y", "API_KEY=z", "s3://ann:w@bucket", "out"])
        ('--password=***', '--token', '***', 'API_KEY=***', 's3://ann@bucket', 'out')
    """
    shown, hides = list[str](), False
    for arg in args:
        option, whole = _OPTION.fullmatch(arg), _ARGUMENT.fullmatch(arg)
        if hides and not arg.startswith("--"):
            shown.append(HIDDEN)
        elif whole and _is_secret(whole["name"]):
            shown.append(f"{whole['kept']}{HIDDEN}")
        else:
            shown.append(without_secrets(arg))
        hides = option is not None and _is_secret(option["name"])
    return tuple(shown)


def shown_setting(key: str, value: _T) -> _T:
    """Return the value of a key of the configuration as people may see it."""
    if isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return (
            shown_args(value)
            if key == _VARIABLES
            else tuple(shown_setting(key, each) for each in value)
        )
    if key == _VARIABLES:
        # Hide a value to its end, whatever is in it.
        if not value.startswith("["):
            return ",".join(shown_args(value.split(",")))
        try:
            return json.dumps(shown_args(json.loads(value)), ensure_ascii=False)
        except (ValueError, TypeError):  # It will be refused.
            return HIDDEN
    if key in _SECRET_URLS:
        return _URL.sub(lambda found: host_alone(found[0]), value)
    return without_secrets(value)


def _is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and not _NO_SECRET.search(name)
