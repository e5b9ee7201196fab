"""Isolation: refuse what leaves the process; restore what was replaced, whatever happens."""

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from os import system as imported_system
from pathlib import Path
from typing import Any

import pytest

from spectheory.auditing.following.isolation import closed, replaced
from spectheory.auditing.tape.decisions import NotEnumerableError

NOBODY = ("127.0.0.1", 9)
UDP = socket.AF_INET, socket.SOCK_DGRAM


def datagram(send: Callable[[socket.socket], Any]) -> None:
    with socket.socket(*UDP) as client:
        send(client)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: socket.create_connection(NOBODY), "uses a network"),
        (lambda: socket.socket().connect(NOBODY), "uses a network"),
        (lambda: socket.socket().connect_ex(NOBODY), "uses a network"),
        (lambda: datagram(lambda client: client.sendto(b"x", NOBODY)), "uses a network"),
        (lambda: datagram(lambda client: client.sendmsg([b"x"], [], 0, NOBODY)), "uses a network"),
        (lambda: socket.getaddrinfo("localhost", 80), "uses a network"),
        (lambda: socket.gethostbyname_ex("localhost"), "uses a network"),
        (lambda: os.system("true"), "starts another process"),
        (lambda: imported_system("true"), "starts another process"),
        (lambda: subprocess.Popen(["true"]), "starts another process"),
        (lambda: subprocess.run([sys.executable, "-c", ""], check=True), "starts another process"),
        (lambda: os.posix_spawn("/bin/true", ["true"], {}), "starts another process"),
        (lambda: os.fork(), "starts another process"),
        (lambda: Path("/dev/urandom").read_bytes(), "draws from /dev/urandom"),
    ],
)
def test_what_leaves_the_process_is_refused(function: Callable[[], Any], says: str) -> None:
    with closed(), pytest.raises(NotEnumerableError, match=says):
        function()


def test_partner_nothing_is_refused_outside_and_in_other_threads() -> None:
    def sends() -> None:
        datagram(lambda client: client.sendto(b"x", NOBODY))
        found.append(1)

    found: list[int] = []
    with closed():
        with closed():
            other = threading.Thread(target=sends)
            other.start()
            other.join()
        with pytest.raises(NotEnumerableError):
            sends()
    sends()
    assert found == [1, 1]
    with closed(), open(__file__, "rb") as file:
        assert file.read(3) == b'"""'


class Parent:
    word = "parent"

    @staticmethod
    def static() -> str:
        return "static"


class Child(Parent):
    own = "child"


def test_everything_is_as_before() -> None:
    """Own and inherited attributes, a static method, a module; one replaced twice; after an error too."""
    before = dict(vars(Child)), dict(vars(Parent)), random.random
    changes = [
        (Child, "word", "first"),
        (Child, "own", "first"),
        (Child, "own", "second"),
        (Parent, "static", lambda: "other"),
        (random, "random", lambda: 2.0),
    ]

    def fails() -> None:
        with replaced(changes):
            assert (Child.word, Child.own, Parent.word) == ("first", "second", "parent")
            assert Parent.static() == "other"
            assert random.random() == 2.0
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert (dict(vars(Child)), dict(vars(Parent)), random.random) == before


def test_an_interruption_before_a_replacement() -> None:
    """What was replaced before is put back, and the inherited name that was about to be is not missed."""

    class Interrupting(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise KeyboardInterrupt

    class Heir(Parent, metaclass=Interrupting):
        pass

    with pytest.raises(KeyboardInterrupt), replaced([(Child, "own", "other"), (Heir, "word", "other")]):
        raise AssertionError
    assert (Child.own, Heir.word) == ("child", "parent")


def test_what_is_not_there_is_refused() -> None:
    """And what was replaced before it is put back."""
    with pytest.raises(AttributeError), replaced([(Child, "own", "other"), (Child, "none", 1)]):
        raise AssertionError
    assert Child.own == "child"
    assert not hasattr(Child, "none")
