"""Declares all settings of a load once.

Each field of `LoadSpec` has a flag, a key in study files, a help, and a label in the live page's form. weir derives
`weir load`, `[load]` of a study, the form, the printed command line and the reference from these fields. `to_plan`
rejects settings that contradict each other, and returns the engine's plan. An error message names a setting by its
flag (`FLAG_NAMES`) or its key (`KEY_NAMES`).

This module does not use pydantic: importing pydantic takes longer than all other imports of a short load.
"""

import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from weir import parsing
from weir.model.errors import InvalidValueError, UsageError
from weir.model.load import Arrivals, ClosedLoad, Load, LoadPlan, OpenLoad, Profile, Request, Session, ThinkTime, Tls

DEFAULT_CONNECTIONS = 64
DEFAULT_DURATION_S = 10.0
MAX_DURATION_S = 3600.0
"""Default maximum length of a load that ends after a number of requests or loops, or at its first failed request."""
MAX_PIPELINE = 1024
_MAX_UNANSWERED = 1_000_000
_PLAN_OPTIONS = (
    "timeout_s", "keep_alive", "retry", "pipeline", "all_addresses", "kernel_timestamps", "requests",
    "until_first_failure", "seed", "scenario", "threads", "cpus",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """The flag, the key and the form label of one field of a load."""

    flags: str
    """Spellings of the flag, such as `-R/--rate`."""
    help: str
    """Help text of the flag: effect and default."""
    metavar: str = ""
    """Placeholder of the flag's value. Empty: the flag has no value and sets `const`."""
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    const: Any = True
    repeats: bool = False
    """Whether users may repeat the flag. The field is then a tuple. For `headers`, the tuple has a result of `read` for
    each flag. For other fields, weir concatenates the results of `read`, which are tuples."""
    key: str = ""
    """Key in study files, such as `load.ramp_s` or `matrix.users`. Empty: study files have no such key."""
    key_help: str = ""
    """Description of the key. Empty: `help` describes the key too."""
    label: str = ""
    """Label in the live page's form. Empty: the form has no such field."""
    placeholder: str = ""
    is_secret: bool = False
    """Whether weir leaves the value out of run files."""


def _setting(default: Any, flags: str, help: str, **how: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(flags, help, **how)})


def _read_scenario(file: str) -> dict[str, Any]:
    # `weir.scenario` imports pydantic, and only a scenario needs pydantic.
    from weir.scenario import read_scenario

    return read_scenario(Path(file))


# How weir reads and writes each kind of value.
_COUNT = {"metavar": "N", "read": parsing.parse_count}
_PROFILE = {"metavar": "PROFILE", "read": parsing.parse_profile, "write": parsing.write_profile}
_TIME = {"metavar": "TIME", "read": parsing.parse_duration, "write": parsing.write_duration}
_PEM = {"metavar": "FILE", "read": parsing.parse_pem_path}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """The settings of a load. None means that the user has not set the field."""

    urls: tuple[str, ...] = ()

    # --- How requests arrive

    connections: int | None = _setting(
        None, "-c/--connections",
        "Number of connections. Without --rate, each connection sends a request after each response. Default: 64.",
        **_COUNT, key="matrix.connections", label="Connections", placeholder="64",
    )  # fmt: skip
    users: Profile | None = _setting(
        None, "--users",
        "Number of users, each with a connection. A user waits for each response. Examples: 200; 0s:0,50s:2000 (a ramp).",
        **_PROFILE, key="matrix.users", label="or users", placeholder="200 or 0s:0,30s:500",
    )  # fmt: skip
    ramp_s: float | None = _setting(
        None, "--ramp", "With --users N: start the users one by one over this time.", **_TIME, key="load.ramp_s",
        key_help="With `matrix.users`: weir starts the users one by one over this time.",
        label="gradual start of the users", placeholder="20s",
    )  # fmt: skip
    rate_rps: Profile | None = _setting(
        None, "-R/--rate",
        "Requests per second, sent without waiting for responses. Examples: 100; 0s:100,30s:1000 (linear increase).",
        **_PROFILE, key="matrix.rate_rps", label="or rate, req/s", placeholder="100 or 0s:100,30s:1000",
    )  # fmt: skip
    arrivals: Arrivals = _setting(
        "constant", "--poisson",
        "With --rate: send requests at independent random times (Poisson arrivals). Default: evenly spaced.",
        const="poisson", key="load.arrivals",
        key_help="With `matrix.rate_rps`: `constant` (evenly spaced arrivals) or `poisson` (independent arrivals).",
    )  # fmt: skip
    loops: int | None = _setting(
        None, "--loops", "Number of requests before a user leaves. With --rate, each arrival is a new user.",
        **_COUNT, key="load.loops",
        key_help="Number of requests before a user leaves. With `matrix.rate_rps`, each arrival is a new user.",
    )  # fmt: skip
    think: ThinkTime | None = _setting(
        None, "--think",
        "Pause of a user between a response and the next request. Examples: 1s, uniform:1s..3s, exp:2s.",
        metavar="PAUSE", read=parsing.parse_think_time, write=parsing.write_think_time, key="load.think",
        key_help='Pause of a user after a response. Examples: `"1s"`, `"uniform:1s..3s"`, `"exp:2s"`.',
        label="Think time", placeholder="1s, uniform:1s..3s, exp:2s",
    )  # fmt: skip
    pace_s: float | None = _setting(
        None, "--pace", "Minimum time from the start of a user's request to the start of the user's next request.",
        **_TIME, key="load.pace_s",
    )  # fmt: skip

    # --- When it ends

    duration_s: float | None = _setting(
        None, "-d/--duration",
        "Length of the load. Default: 10s, or the profile's length. With -n, --loops or --until-failure: at most 1h.",
        **_TIME, key="load.duration_s", label="Duration", placeholder="10s",
        key_help="Length of a trial's measured load. If another condition can end the load: the maximum length.",
    )  # fmt: skip
    requests: int | None = _setting(
        None, "-n/--requests", "End the load when this number of requests has been answered or has failed.", **_COUNT,
        key="load.requests", key_help="A trial ends when this number of requests has been answered or has failed.",
        label="Maximum requests",
    )  # fmt: skip
    until_first_failure: bool = _setting(
        False, "--until-failure", "End the load at the first failed request, and report the figures until then.",
        key="load.until_first_failure", key_help="The first failed request ends the trial.",
    )  # fmt: skip

    # --- What each request contains

    method: str | None = _setting(
        None, "-m/--method", "HTTP method. Default: GET, or POST with a body.", metavar="METHOD",
        read=parsing.parse_method, label="Method", placeholder="GET",
    )  # fmt: skip
    headers: tuple[tuple[str, str], ...] = _setting(
        (), "-H/--header", "Request header as 'Name: value'. The option may be repeated.", metavar="HEADER",
        read=parsing.parse_header, write=parsing.write_header, repeats=True, label="Headers, one a line",
        placeholder="Name: value",
    )  # fmt: skip
    body: bytes | None = _setting(
        None, "-b/--body", "Body of the request. @FILE reads the body from a file.", metavar="TEXT",
        read=parsing.parse_body, write=parsing.write_body, label="Body",
    )  # fmt: skip
    user: tuple[str, str] | None = _setting(
        None, "--user", "Name and password for basic authentication. Alternative: the URL http://NAME:PASSWORD@HOST/.",
        metavar="NAME:PASSWORD", read=parsing.parse_credentials, write=parsing.write_credentials, is_secret=True,
    )  # fmt: skip
    scenario: dict[str, Any] | None = _setting(
        None, "--scenario", "TOML file with the requests of each user. See docs/guides/scenarios.md.", metavar="FILE",
        read=_read_scenario, key="load.scenario",
        key_help="Requests of each user, in place of the workload's request. Either the path of a scenario file, "
                 "relative to the study, or a table such as `[[load.scenario.steps]]`. See docs/guides/scenarios.md.",
    )  # fmt: skip

    # --- How connections are made

    timeout_s: float = _setting(
        2.0, "--timeout", "A request fails if its whole response takes longer than this time. Default: 2s.", **_TIME,
        key="load.timeout_s", key_help="A request fails if its whole response takes longer than this time.",
        label="Timeout", placeholder="2s",
    )  # fmt: skip
    keep_alive: bool = _setting(
        True, "--no-keepalive", "Open a new connection for each request. Response times include the connection setup.",
        const=False, key="load.keep_alive",
        key_help="`true`: a connection carries one request after another. `false`: each request opens a connection.",
    )  # fmt: skip
    retry: bool = _setting(
        True, "--no-retry",
        "Count a request as failed if the server closes its reused connection before a response. "
        "Default: send a GET, HEAD, OPTIONS, PUT or DELETE once more.",
        const=False, key="load.retry",
        key_help="`true`: weir repeats a request once if the server closes its reused connection before a response. "
                 "weir never repeats POST and PATCH. `false`: the request counts as failed.",
    )  # fmt: skip
    pipeline: int = _setting(
        1, "--pipeline",
        "Maximum number of unanswered requests on a connection (HTTP/1.1 pipelining), from 1 to 1024. Default: 1.",
        **_COUNT, key="load.pipeline", key_help="Maximum number of unanswered requests on a connection.",
    )  # fmt: skip
    connect_to: str | None = _setting(
        None, "--connect-to", "Connect to this address instead of the URL's host.", metavar="HOST:PORT",
        read=parsing.parse_endpoint,
    )  # fmt: skip
    all_addresses: bool = _setting(
        False, "--all-addresses",
        "Connect to all working addresses of the URL's host, in turn. Default: to the first of them.",
    )  # fmt: skip
    bind: tuple[str, ...] = _setting(
        (), "--bind",
        "Local addresses to connect from. An address allows about 28,000 connections. Example: 127.0.0.2,127.0.0.3.",
        metavar="ADDRESS", read=parsing.parse_addresses, repeats=True,
    )  # fmt: skip
    tls_ca: str | None = _setting(
        None, "--cacert", "TLS: trust the certificate authorities in this file, not those of the system.", **_PEM,
        key="load.tls_ca",
    )  # fmt: skip
    tls_certificate: str | None = _setting(
        None, "--cert", "TLS: file with the client certificate. Needs --key.", **_PEM,
        key="load.tls_certificate", key_help="TLS: file with the client certificate. Needs `tls_key`.",
    )  # fmt: skip
    tls_key: str | None = _setting(
        None, "--key", "TLS: file with the private key. Needs --cert.", **_PEM,
        key="load.tls_key", key_help="TLS: file with the private key. Needs `tls_certificate`.",
    )  # fmt: skip
    tls_insecure: bool = _setting(
        False, "--insecure", "TLS: trust any certificate of the server.", key="load.tls_insecure"
    )
    tls_server_name: str | None = _setting(
        None, "--sni", "TLS: name that the server's certificate must have. Default: the URL's host.", metavar="NAME",
        key="load.tls_server_name",
    )  # fmt: skip
    tls_resumption: bool = _setting(
        True, "--no-tls-resumption", "TLS: make full handshakes. Default: resume sessions.", const=False,
        key="load.tls_resumption", key_help="`false`: each connection makes a full TLS handshake.",
    )  # fmt: skip
    kernel_timestamps: bool = _setting(
        False, "--kernel-timestamps",
        "Measure response times until the kernel receives the response, not until the generator reads the response.",
        key="load.kernel_timestamps",
        key_help="A response time ends when the kernel has received the response, not when the generator reads it.",
    )  # fmt: skip

    # --- The generator

    threads: int = _setting(
        1, "-t/--threads", "Number of generator threads. One thread is enough for most servers. Default: 1.", **_COUNT,
    )  # fmt: skip
    cpus: tuple[int, ...] = _setting(
        (), "--cpus", "CPUs for the generator's threads. Examples: 0, or 0,2-3.", metavar="CPUS",
        read=parsing.parse_cpus, write=parsing.write_cpus,
    )  # fmt: skip
    seed: int = _setting(
        0, "--seed", "Seed of random pauses and arrivals. The same seed repeats the same values. Default: 0.",
        metavar="N", read=parsing.parse_seed,
    )  # fmt: skip

    # --- Files that the user named in flags, for the printed command line

    body_file: str | None = None
    scenario_file: str | None = None

    @property
    def ends_by_itself(self) -> bool:
        """Whether a setting other than the duration can end the load."""
        return self.requests is not None or self.loops is not None or self.until_first_failure

    def to_load(self, names: "Names") -> Load:
        """Returns the closed or open load of these settings. Raises UsageError if settings contradict each other."""
        if self.rate_rps is not None:
            return self._open_load(self.rate_rps, names)
        if self.arrivals != "constant":
            raise _error(names, "arrivals", f"found without {names['rate_rps']}, expected both")
        pauses = _has_pauses(self.scenario)
        return ClosedLoad(self._user_profile(names), self.think, self.loops, self.pace_s, has_pauses=pauses)

    def to_plan(self, names: "Names | None" = None) -> LoadPlan:
        """Returns the plan of this load. Raises UsageError if settings contradict each other or a URL is not valid."""
        names = names or FLAG_NAMES
        authorized = self._with_authorization(names)
        if authorized is not self:
            return authorized.to_plan(names)
        load = self.to_load(names)
        targets = self._targets(load, names)
        self._check_scenario(names)
        self.check_pipeline(load, names)
        self._check_kernel_timestamps(names)
        self._check_all_addresses(names)
        return LoadPlan(
            request=Request(self.method or self._usual_method, self.urls[0], self.headers, self.body),
            load=load,
            duration_s=self._default_duration_s(load) if self.duration_s is None else self.duration_s,
            address=self.connect_to,
            targets=targets,
            local_addresses=self.bind,
            tls=self.to_tls(names),
            **self.plan_options,
        )

    @property
    def plan_options(self) -> dict[str, Any]:
        """Returns the settings that have the same name in `LoadPlan`."""
        return {name: getattr(self, name) for name in _PLAN_OPTIONS}

    def check_pipeline(self, load: Load, names: "Names") -> None:
        """Raises UsageError if `pipeline` contradicts the load, or allows too many unanswered requests."""
        if self.pipeline > MAX_PIPELINE:
            raise _error(names, "pipeline", f"found {self.pipeline}, expected a number from 1 to {MAX_PIPELINE}")
        if self.pipeline == 1:
            return
        waits = {
            names["keep_alive"]: not self.keep_alive,
            f"{names['scenario']} with cookies, extraction, a pause, or users that leave": _needs_responses(
                self.scenario
            ),
            f"a profile of users, {names['think']}, {names['loops']} or {names['pace_s']}": isinstance(load, ClosedLoad)
            and not load.is_plain,
            names["loops"]: isinstance(load, OpenLoad) and load.session is not None,
        }
        if beside := [name for name, is_given in waits.items() if is_given]:
            expected = "expected keep-alive connections and no pause between requests"
            raise _error(names, "pipeline", f"found {self.pipeline} together with {beside[0]}, {expected}")
        if load.connections * self.pipeline > _MAX_UNANSWERED:
            each = f"{self.pipeline} requests on each of {load.connections} connections"
            raise _error(names, "pipeline", f"found {each}, expected at most {_MAX_UNANSWERED:,} requests in flight")

    def to_arguments(self) -> list[str]:
        """Returns the arguments of `weir load` for this load."""
        words = list(self.urls)
        for name, setting in SETTINGS.items():
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                words += self._words(name, setting, value)
        return words

    def to_command(self) -> str:
        return shlex.join(["weir", "load", *self.to_arguments()])

    def without_implied_settings(self) -> "LoadSpec":
        """Returns the same load without the headers and the method that the engine sends by default."""
        host = urlsplit(self.urls[0]).netloc.lower()
        connection = "keep-alive" if self.keep_alive else "close"
        implied = {("host", host), ("host", re.sub(":(80|443)$", "", host)), ("connection", connection)}
        headers = [header for header in self.headers if header[0].lower() != "content-length"]
        given = tuple(one for one in headers if (one[0].lower(), one[1].lower()) not in implied)
        is_usual = self.method == self._usual_method
        return replace(self, headers=given, method=None if is_usual else self.method)

    @property
    def _usual_method(self) -> str:
        return "GET" if self.body is None else "POST"

    def _words(self, name: str, setting: Setting, value: Any) -> list[str]:
        flag = setting.flags.split("/")[0]
        if not setting.metavar:
            return [flag]
        if name == "body" and self.body_file is not None:
            return [flag, f"@{self.body_file}"]
        if name == "scenario":
            return [flag, self.scenario_file or "scenario.toml"]
        if setting.repeats:
            return [word for one in value for word in (flag, setting.write(one))]
        return [flag, setting.write(value)]

    def _open_load(self, rate_rps: Profile, names: "Names") -> OpenLoad:
        for name in ("users", "ramp_s", "pace_s"):
            if getattr(self, name) is not None:
                expected = "expected only one of the two: arrivals at a rate do not wait for users"
                raise _error(names, name, f"found together with {names['rate_rps']}, {expected}")
        if self.think is not None and self.loops is None:
            problem = f"found together with {names['rate_rps']} and without {names['loops']}, expected all three"
            raise _error(names, "think", problem, hint=f"add {names['loops']}, the number of requests of each arrival")
        session = None if self.loops is None else Session(self.loops, self.think)
        return OpenLoad(rate_rps, self.connections or DEFAULT_CONNECTIONS, self.arrivals, session)

    def _user_profile(self, names: "Names") -> Profile:
        users = self.users
        if users is None:
            if self.ramp_s is not None:
                raise _error(names, "ramp_s", f"found without {names['users']}, expected both")
            return self.connections or DEFAULT_CONNECTIONS
        if self.connections is not None:
            found = f"found together with {names['connections']}"
            raise _error(names, "users", f"{found}, expected only one of the two: every user has a connection")
        if not isinstance(users, tuple) and users != int(users):
            raise _error(names, "users", f"found {users:g}, expected a whole number")
        if self.ramp_s is None:
            return users
        if isinstance(users, tuple):
            found = f"found together with {names['users']} {parsing.write_profile(users)}"
            raise _error(names, "ramp_s", f"{found}, expected a single number of users")
        return ((0.0, 0.0), (self.ramp_s, users))

    def _default_duration_s(self, load: Load) -> float:
        """Returns the duration of a load without `duration_s`."""
        if self.requests is not None or (isinstance(load, ClosedLoad) and load.requests_per_user is not None):
            return MAX_DURATION_S
        if self.ramp_s is not None:
            return self.ramp_s + DEFAULT_DURATION_S
        varying = load.users if isinstance(load, ClosedLoad) else load.rate_rps
        last_s = varying[-1][0] if isinstance(varying, tuple) else 0.0
        return last_s or (MAX_DURATION_S if self.until_first_failure else DEFAULT_DURATION_S)

    def _with_authorization(self, names: "Names") -> "LoadSpec":
        """Replaces `user` and the passwords in URLs with a header Authorization (RFC 7617). Returns the new load."""
        parts = [_split_credentials(url) for url in self.urls]
        found = {user for _, user in parts if user is not None} | ({self.user} if self.user is not None else set())
        if not found:
            return self
        if len(found) > 1:
            raise _error(names, "user", "found two names or passwords, expected one name and password for all URLs")
        if any(name.lower() == "authorization" for name, _ in self.headers):
            problem = f"found together with Authorization in {names['headers']}, expected only one of the two"
            raise _error(names, "user", problem)
        if self.scenario is not None:
            problem = f"found together with {names['scenario']}, expected a header Authorization in the scenario"
            raise _error(names, "user", problem)
        token = b64encode(parsing.write_credentials(found.pop()).encode()).decode("ascii")
        headers = (*self.headers, ("Authorization", f"Basic {token}"))
        return replace(self, urls=tuple(url for url, _ in parts), user=None, headers=headers)

    def _targets(self, load: Load, names: "Names") -> tuple[str, ...]:
        for url in self.urls:
            if "://" not in url and not url.startswith("unix:"):
                expected = "expected http://HOST[:PORT]/PATH"
                raise UsageError(f"URL: found {url!r}, {expected}", hint=f"weir load http://{url}")
        count = len(self.urls)
        if count == 1:
            return ()
        if self.scenario is not None:
            raise UsageError(f"URL: found {count} URLs together with {names['scenario']}, expected one URL")
        schemes = sorted({url.partition(":")[0].lower() for url in self.urls})
        if len(schemes) > 1:
            raise UsageError(f"URL: found {' and '.join(schemes)}, expected the same scheme in all URLs")
        if load.connections < count:
            found = f"found {count} URLs for {load.connections} connections"
            raise UsageError(f"URL: {found}, expected at least one connection for each URL", hint=f"-c {count}")
        return self.urls

    def _check_scenario(self, names: "Names") -> None:
        if self.scenario is None:
            return
        for name in ("method", "headers", "body"):
            if value := getattr(self, name):
                expected = f"expected this setting in the steps of {self.scenario_file or 'the scenario'}"
                raise _error(names, name, f"found {value!r} together with {names['scenario']}, {expected}")

    def to_tls(self, names: "Names") -> Tls | None:
        """Returns the TLS settings; None without such settings. Raises UsageError if settings contradict each other."""
        given = [name for name in SETTINGS if name.startswith("tls_") and getattr(self, name) != _DEFAULTS[name]]
        if not given:
            return None
        for url in self.urls:
            if not url.lower().startswith("https://"):
                raise _error(names, given[0], f"found with {url!r}, expected a URL that begins with https://")
        if (self.tls_certificate is None) != (self.tls_key is None):
            alone, missing = ("tls_certificate", "tls_key") if self.tls_key is None else ("tls_key", "tls_certificate")
            raise _error(names, alone, f"found without {names[missing]}, expected both or neither")
        if self.tls_insecure and self.tls_ca is not None:
            raise _error(names, "tls_insecure", f"found together with {names['tls_ca']}, expected only one of the two")
        return Tls(**{one.name: getattr(self, f"tls_{one.name}") for one in fields(Tls)})

    def _check_kernel_timestamps(self, names: "Names") -> None:
        url = next((url for url in self.urls if url.startswith("unix:")), None)
        if self.kernel_timestamps and url is not None:
            name, expected = names["kernel_timestamps"], "expected a target over TCP: only packets have timestamps"
            raise UsageError(f"{name}: found with {url!r}, {expected}", hint=f"omit {name}")

    def _check_all_addresses(self, names: "Names") -> None:
        fixed = [url for url in self.urls if url.startswith("unix:")]
        fixed += [] if self.connect_to is None else [names["connect_to"]]
        if self.all_addresses and fixed:
            expected = "expected a host whose addresses weir looks up"
            raise _error(names, "all_addresses", f"found together with {fixed[0]}, {expected}")


Names = Mapping[str, str]
"""A mapping from each field of `LoadSpec` to the flag or key that messages show."""
SETTINGS: Final[Mapping[str, Setting]] = {one.name: one.metadata["setting"] for one in fields(LoadSpec) if one.metadata}
"""A mapping from each field of `LoadSpec` to its `Setting`. `weir load --help` has the same order."""
PEM_SETTINGS = tuple(name for name, one in SETTINGS.items() if one.read is parsing.parse_pem_path)
"""Fields with the path of a PEM file. In study files, the path is relative to the study."""
_DEFAULTS = {one.name: one.default for one in fields(LoadSpec)}
FLAG_NAMES: Final[Names] = {name: setting.flags for name, setting in SETTINGS.items()}
_KEYS = {name: setting.key for name, setting in SETTINGS.items()}
KEY_NAMES: Final[Names] = _KEYS | {"keep_alive": "load.keep_alive = false"}


def read_flags(urls: tuple[str, ...], given: Mapping[str, Any]) -> LoadSpec:
    """Returns the load of a command line. `given` maps each field to the value of its flag: a text, a list of texts if
    users may repeat the flag, or True for a flag without a value. None, False and an empty list mean: not given.
    Raises UsageError if a text is not a valid value."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        setting = SETTINGS[name]
        if not value and value != "":
            continue
        try:
            if not setting.metavar:
                values[name] = setting.const
            elif setting.repeats:
                read = [setting.read(text) for text in value]
                values[name] = tuple(read) if name == "headers" else tuple(item for one in read for item in one)
            else:
                values[name] = setting.read(value)
        except InvalidValueError as error:
            raise error.at(setting.flags) from None
    return LoadSpec(urls=urls, **values, scenario_file=given.get("scenario"))


def choose_user_settings(users: Profile) -> dict[str, Any]:
    """Returns the `LoadSpec` fields for `users`: `connections`, `users` with `ramp_s`, or a profile in `users`."""
    match users:
        case ((0.0, 0.0), (ramp_s, most)) if ramp_s > 0 and most == int(most):
            return {"users": most, "ramp_s": ramp_s}
        case tuple():
            return {"users": users}
        case _:
            return {"connections": int(users)}


def _split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Returns the URL without name and password, and both as a pair. None in place of the pair: the URL has no name."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    userinfo, at, host = authority.rpartition("@")
    if not at:
        return url, None
    name, _, password = userinfo.partition(":")
    return f"{scheme}{separator}{host}{slash}{path}", (unquote(name), unquote(password))


def _list_steps(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*scenario.get("steps", []), *scenario.get("requests", [])]


def _has_pauses(scenario: Mapping[str, Any] | None) -> bool:
    """Returns whether users pause after a request of a scenario."""
    return scenario is not None and any(step.get("think") is not None for step in _list_steps(scenario))


def _needs_responses(scenario: Mapping[str, Any] | None) -> bool:
    """Returns whether a request of a scenario depends on an earlier response."""
    if scenario is None:
        return False
    extracts = any(step.get("extract") for step in _list_steps(scenario))
    return (
        extracts or _has_pauses(scenario) or scenario.get("cookies") != "off" or scenario.get("on_failure") == "leave"
    )


def _error(names: Names, name: str, problem: str, *, hint: str = "") -> UsageError:
    hint = hint or ("weir load --help" if names is FLAG_NAMES else "docs/reference/study.md describes every key")
    return UsageError(f"{names[name]}: {problem}", hint=hint)
