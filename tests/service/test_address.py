"""Where a Redis is, from its URL."""

from __future__ import annotations

import pytest

from service.address import Address, Manner, address_in

SINGLE, SENTINEL, CLUSTER = Manner.SINGLE, Manner.SENTINEL, Manner.CLUSTER


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://cache", Address(SINGLE, (("cache", 6379),))),
        ("redis://cache:7000/3", Address(SINGLE, (("cache", 7000),), db=3)),
        ("redis://[::1]:7000/0", Address(SINGLE, (("::1", 7000),))),
        ("rediss://:p%40ss@cache", Address(SINGLE, (("cache", 6379),), tls=True, password="p@ss")),
        ("redis://me:a%3Ab@cache", Address(SINGLE, (("cache", 6379),), user="me", password="a:b")),
        ("unix:///run/redis.sock?db=2", Address(SINGLE, path="/run/redis.sock", db=2)),
        ("redis+sentinel://a,b:2/lathe", Address(SENTINEL, (("a", 26379), ("b", 2)), service="lathe")),
        ("rediss+sentinel://u:p@a/lathe/4", Address(SENTINEL, (("a", 26379),), tls=True, db=4, user="u", password="p", service="lathe")),
        (
            "redis+sentinel://a/lathe?sentinel_user=w&sentinel_password=x",
            Address(SENTINEL, (("a", 26379),), service="lathe", sentinel_user="w", sentinel_password="x"),
        ),
        ("redis+cluster://a:1,b", Address(CLUSTER, (("a", 1), ("b", 6379)))),
        ("rediss+cluster://u:p@a", Address(CLUSTER, (("a", 6379),), tls=True, user="u", password="p")),
    ],
)
def test_each_part_of_a_url_has_its_meaning(url: str, expected: Address) -> None:
    assert expected == address_in(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://cache",
        "redis://",
        "redis://a,b",
        "redis://cache:port",
        "redis://cache:70000",
        "redis://cache/x",
        "redis://cache/1/2",
        "redis://cache?db=3",
        "unix://",
        "unix://host/path",
        "redis+sentinel://a",
        "redis+sentinel://a/lathe/x",
        "redis+sentinel://a/lathe?password=x",
        "redis+cluster://a/1",
        "redis+cluster://a,,b",
    ],
)
def test_a_url_without_sense_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected|unknown"):
        address_in(url)


def test_a_refusal_never_tells_the_password() -> None:
    with pytest.raises(ValueError) as refused:
        address_in("redis://me:hush-hush@cache:port/0")

    assert "hush" not in str(refused.value)
