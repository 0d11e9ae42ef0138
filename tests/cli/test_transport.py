import pytest

from weir.cli.transport import TlsFlags, several_targets, tls
from weir.model.errors import UsageError
from weir.model.load import Tls


def test_one_url_is_no_several_targets() -> None:
    assert several_targets(["http://a/"], 1, has_scenario=True) == ()
    assert several_targets(["http://a/", "HTTP://b/"], 2, has_scenario=False) == ("http://a/", "HTTP://b/")


@pytest.mark.parametrize(
    ("urls", "connections", "has_scenario", "problem"),
    [
        (["a:80"], 1, False, "URL: found 'a:80', expected http://HOST[:PORT]/PATH"),
        (["http://a/", "b"], 2, False, "URL: found 'b', expected http://HOST[:PORT]/PATH"),
        (["http://a/", "http://b/"], 2, True, "URL: found 2 beside --scenario, expected one"),
        (["unix:/a", "http://b/"], 2, False, "URL: found http and unix, expected URLs of one scheme"),
        (["http://a/", "http://b/"], 1, False, "URL: found 2 for 1 connections, expected a connection for each"),
    ],
)
def test_urls_that_are_no_targets_of_one_load_are_named(urls: list[str], connections: int, has_scenario: bool, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        several_targets(urls, connections, has_scenario=has_scenario)
    assert problem in str(caught.value)


def test_flags_on_tls_are_for_https_alone() -> None:
    assert tls(["https://a/", "https://b/"], TlsFlags(insecure=True)) == Tls(insecure=True)
    with pytest.raises(UsageError, match="--insecure: found with 'http://b/'"):
        tls(["https://a/", "http://b/"], TlsFlags(insecure=True))
