"""Where a farm is and who asks: from arguments, else from the environment."""

from __future__ import annotations

import ipaddress
import os
import ssl
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:7421"


class Settings:
    """An address, a token and how TLS is checked.

    Raises:
        ValueError: The address is not `http://HOST:PORT` or `https://HOST[:PORT]`, the token has
            characters that a header cannot have, or plain HTTP would go to another machine.
        OSError: The file of the token or of the authority cannot be read.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        ca_file: str | None = None,
        allow_plain: bool = False,
    ) -> None:
        environment = os.environ
        url = url or environment.get("TESSERA_URL") or DEFAULT_URL
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError(f"{url!r} is not an address such as https://farm.example")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"{url!r} has more than a host and a port")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        if not self.secure and not allow_plain and not _is_loopback(self.host):
            raise ValueError(
                f"{url!r}: the token would cross the network in clear; use https, an ssh tunnel, "
                "or allow_plain=True"
            )
        self.netloc = parts.netloc
        self.token = (token or _token()).strip()
        if not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise ValueError("the token has characters that no token has")
        self.context: ssl.SSLContext | None = None
        if self.secure:
            ca_file = ca_file or environment.get("TESSERA_CA_FILE") or None
            self.context = ssl.create_default_context(cafile=ca_file)
            self.context.minimum_version = ssl.TLSVersion.TLSv1_2


def _token() -> str:
    token = os.environ.get("TESSERA_API_TOKEN", "")
    path = os.environ.get("TESSERA_API_TOKEN_FILE", "")
    if token or not path:
        return token
    with open(path, encoding="ascii") as stream:
        # A token has 53 characters.
        return stream.read(4096)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
