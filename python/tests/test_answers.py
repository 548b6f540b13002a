"""Answers that are none: each ends as a clear error, and none of them as a wait without an end."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
import unittest
from unittest import mock

from tessera_farm import (
    BadAnswer,
    Conflict,
    Corrupt,
    Farm,
    Malformed,
    NotFound,
    NotSignedIn,
    Refused,
    TimedOut,
    Unavailable,
    Unreachable,
)
from tessera_farm.events import Stream
from tessera_farm.fetching import Wanted, name_of, stem_of, to_file, to_memory
from tessera_farm.models import FrameFile
from tessera_farm.settings import Settings

from .support import Answer, Server, always, http

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JOB = "01a21e81-3bba-7581-b07f-3ae5f1211826"
NONE: tuple[object, ...] = ([], None, True, {})
EMPTY = FrameFile("exr", "ab" * 32, 10)


def drip(stream: socket.socket, _: bytes) -> None:
    """One byte of a head every 50 ms, for ever."""
    while True:
        stream.sendall(b"H")
        time.sleep(0.05)


def drip_body(stream: socket.socket, _: bytes) -> None:
    """A long body, a byte every 50 ms."""
    stream.sendall(http("200 OK", length=100_000))
    while True:
        stream.sendall(b" ")
        time.sleep(0.05)


def always_wait(stream: socket.socket, _: bytes) -> None:
    """Interim answers without an end."""
    while True:
        stream.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


def silent(stream: socket.socket, _: bytes) -> None:
    """Nothing."""
    stream.recv(1)


class AnswersTest(unittest.TestCase):
    """One request to a server that misbehaves."""

    def setUp(self) -> None:
        # Waits between tries are not what is tested.
        patches = [("tessera_farm.connection._PAUSE", 0.01), ("tessera_farm.connection._TRIES", 3)]
        for name, value in patches:
            patch = mock.patch(name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def told(self, answer: Answer, quiet: float = 0.5, within: float = 1.5) -> Exception:
        """What `me` raises, within a few seconds."""
        began = time.monotonic()
        with Server(answer) as server, Farm(server.url, "t", quiet=quiet, within=within) as farm:
            try:
                told: object = farm.me()
            except Exception as error:
                self.assertLess(time.monotonic() - began, 6.0)
                return error
        raise AssertionError(f"{told} came of it")

    def test_bodies_that_are_no_json_are_bad_answers(self) -> None:
        for body in (b"", b"{", b"<html>", b"[" * 100_000, b'{"name":', b"\xff\xfe", b"1 2"):
            self.assertIsInstance(self.told(always(http("200 OK", body))), BadAnswer, body[:20])

    def test_fields_of_another_type_are_bad_answers(self) -> None:
        good: dict[str, object] = {"name": "a", "number": 1, "role": "admin", "expires_at": 2}
        with Server(always(http("200 OK", json.dumps(good).encode()))) as server:
            with Farm(server.url, "t") as farm:
                self.assertEqual(farm.me().name, "a")
        wrong: list[object] = [[], "a", 7, None, {}]
        wrong += [{**good, name: value} for name in good for value in NONE]
        wrong += [{**good, "number": "1"}, {**good, "name": 1}]
        for value in wrong:
            error = self.told(always(http("200 OK", json.dumps(value).encode())))
            self.assertIsInstance(error, BadAnswer, value)

    def test_answers_that_are_cut_are_lost_connections(self) -> None:
        whole = http("200 OK", b'{"name": "a"}')
        chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a"'
        for cut in (whole[:5], whole[:30], whole[:-1], http("200 OK", b"{", length=9), chunked):
            error = self.told(always(cut))
            self.assertIsInstance(error, (Unreachable, BadAnswer), cut)

    def test_what_is_no_http_is_a_bad_answer(self) -> None:
        heads = (
            b"\0" * 70_000,
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000,
        )
        for head in heads:
            error = self.told(always(head))
            self.assertIsInstance(error, (BadAnswer, Unreachable), head[:20])
        many = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n"
        self.assertIsInstance(self.told(always(many)), BadAnswer)

    def test_long_answers_are_not_read(self) -> None:
        with mock.patch("tessera_farm.connection.JSON_MAX", 1000):
            # Both are looked up when the function is made.
            from tessera_farm.connection import Answer as Read

            with mock.patch.object(Read.read, "__defaults__", (1000,)):
                declared = self.told(always(http("200 OK", length=1 << 40)))
                self.assertRegex(str(declared), "longer than 1000")
                endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 5000
                self.assertRegex(str(self.told(always(endless))), "longer than 1000")

    def test_slow_and_silent_servers_time_out(self) -> None:
        for answer in (drip, drip_body, always_wait, silent):
            self.assertIsInstance(self.told(answer), TimedOut, answer.__name__)

    def test_refusals_carry_problem_details(self) -> None:
        problem = json.dumps({"title": "T", "status": 404, "detail": "why", "jobs": [{"job": "a"}]})
        error = self.told(always(http("404 Not Found", problem.encode())))
        self.assertIsInstance(error, NotFound)
        assert isinstance(error, Refused)
        self.assertEqual((error.status, error.title, error.detail), (404, "T", "why"))
        self.assertEqual(error.jobs, [{"job": "a"}])
        for status, kind in ((401, NotSignedIn), (409, Conflict), (422, Malformed), (418, Refused)):
            self.assertIsInstance(self.told(always(http(f"{status} X"))), kind)
        for body in (b"", b"<html>", b"[]", b'{"detail": 7, "jobs": "x"}'):
            self.assertIsInstance(self.told(always(http("400 Bad", body))), Malformed)

    def test_the_token_follows_no_redirect(self) -> None:
        with Server(silent) as other:
            to = http("302 Found", headers=[f"Location: {other.url}/"])
            self.assertIsInstance(self.told(always(to)), BadAnswer)
            self.assertEqual(other.heads, [])

    def test_safe_requests_are_tried_again_and_others_not(self) -> None:
        with Server(always(http("503 Service Unavailable"))) as server:
            with Farm(server.url, "t") as farm:
                for call in (farm.me, lambda: farm.pause(JOB), lambda: farm.drain("n")):
                    before = len(server.heads)
                    self.assertRaises(Unavailable, call)
                    self.assertEqual(len(server.heads) - before, 3)
                for call in (lambda: farm.retry(JOB), lambda: farm.forget(JOB)):
                    before = len(server.heads)
                    self.assertRaises(Unavailable, call)
                    self.assertEqual(len(server.heads) - before, 1)

    def test_who_asks_too_often_waits_and_asks_again(self) -> None:
        answers = [http("429 Too Many", headers=["Retry-After: 0"])] * 2
        nothing = {"jobs": [], "unchanged": 0, "refused": 0, "refusals": [], "left": 0}
        answers.append(http("200 OK", json.dumps(nothing).encode()))

        def answer(stream: socket.socket, head: bytes) -> None:
            stream.sendall(answers[len(server.heads) - 1])

        with Server(answer) as server, Farm(server.url, "t") as farm:
            self.assertEqual(farm.retry(JOB).jobs, [])
            self.assertEqual(len(server.heads), 3)

    def test_a_farm_that_is_not_there_is_unreachable(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with Farm(f"http://127.0.0.1:{port}", "t") as farm:
            self.assertRaises(Unreachable, farm.me)


class FilesTest(unittest.TestCase):
    """Files from a server that misbehaves."""

    def setUp(self) -> None:
        patch = mock.patch("tessera_farm.fetching._VAIN_MAX", 1)
        patch.start()
        self.addCleanup(patch.stop)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def fetched(self, answer: bytes) -> Exception:
        """What fetching a file of ten bytes raises; nothing has its name then."""
        path = os.path.join(self.folder.name, "a.exr")
        with Server(always(answer)) as server, Farm(server.url, "t", quiet=1.0) as farm:
            try:
                to_file(farm._farm, Wanted(JOB, 1, EMPTY), path)
            except Exception as error:
                self.assertFalse(os.path.exists(path))
                return error
        raise AssertionError("it was fetched")

    def test_bytes_without_their_hash_are_refused(self) -> None:
        tag = ['ETag: "' + EMPTY.hash + '"']
        self.assertIsInstance(self.fetched(http("200 OK", b"0123456789", tag)), Corrupt)
        self.assertIsInstance(self.fetched(http("200 OK", b"0" * 11, tag)), BadAnswer)
        self.assertIsInstance(self.fetched(http("200 OK", b"0" * 5, tag)), BadAnswer)
        other = ['ETag: "' + "cd" * 32 + '"']
        self.assertIsInstance(self.fetched(http("200 OK", b"0123456789", other)), BadAnswer)
        self.assertEqual(
            [name for name in os.listdir(self.folder.name) if not name.endswith(".part")], []
        )
        with Server(always(http("200 OK", b"0123456789", tag))) as server:
            with Farm(server.url, "t") as farm:
                wanted = Wanted(JOB, 1, EMPTY)
                self.assertRaises(Corrupt, to_memory, farm._farm, wanted, 100)
                self.assertRaises(BadAnswer, to_memory, farm._farm, wanted, 9)

    def test_names_stay_in_their_folder(self) -> None:
        names = {
            "a": "a", "../../etc/passwd": "_.._etc_passwd", "..": "job", "": "job", "-rf": "rf",
            "a\0b\nc": "a_b_c", "C:\\x": "C__x", ".": "job", "a. ": "a", "\u202ex": "_x",
        }  # fmt: skip
        for name, wanted in names.items():
            self.assertEqual(stem_of(name), wanted)
        self.assertLessEqual(len(stem_of("\u00e9" * 500).encode()), 128)
        self.assertEqual(name_of("a", 7, FrameFile("flux.npy", "", 0)), "a.0007.flux.npy")
        for bad in ("../exr", "exr/", "a.b.c", "", ".exr", "e\0", "E" * 100):
            self.assertRaises(BadAnswer, name_of, "a", 7, FrameFile(bad, "", 0))


class EventsTest(unittest.TestCase):
    """Streams of events from a server that misbehaves."""

    def read(self, answer: Answer, quiet: float = 0.5) -> tuple[list[str], Exception | None]:
        """The kinds of events that come, and what ends them."""
        kinds: list[str] = []
        with Server(answer) as server, Farm(server.url, "t", within=3.0) as farm:
            stream = Stream(farm._farm, patience=0.4, quiet=quiet)
            began = time.monotonic()
            try:
                for event in stream:
                    kinds.append(event.kind)
                    if len(kinds) == 3:
                        stream.close()
            except Exception as error:
                self.assertLess(time.monotonic() - began, 10)
                return kinds, error
        return kinds, None

    def test_events_are_read_and_cut_streams_go_on(self) -> None:
        one = b'retry: 2000\nevent: hello\nid: 7.1\ndata: {"resumed":false}\n\n'

        def answer(stream: socket.socket, head: bytes) -> None:
            heads.append(head)
            stream.sendall(EVENTS + one + b'event: jobs\ndata: {"jo')

        heads: list[bytes] = []
        kinds, error = self.read(answer)
        # The patience begins anew with each event.
        self.assertEqual((kinds, error), (["hello"] * 3, None))
        self.assertNotIn(b"Last-Event-ID", heads[0])
        self.assertIn(b"Last-Event-ID: 7.1\r\n", heads[1])

    def test_streams_that_are_none_end_as_errors(self) -> None:
        for body in (b"data: {\n\n", b"data: [[[\n\n", b"event: x\ndata: \xff\n\n"):
            self.assertIsInstance(self.read(always(EVENTS + body))[1], BadAnswer, body)
        page = http("200 OK", b"<html>", ["Content-Type: text/html"])
        self.assertIsInstance(self.read(always(page))[1], BadAnswer)
        self.assertIsInstance(self.read(always(http("401 Unauthorized")))[1], NotSignedIn)
        self.assertIsInstance(self.read(always(http("503 X")))[1], Unavailable)
        with mock.patch("tessera_farm.events._EVENT_MAX", 1000):
            long = self.read(always(EVENTS + b"data: " + b"x" * 5000))[1]
            self.assertRegex(str(long), "more than 1000")
            many = self.read(always(EVENTS + b"data: 1\n" * 5000))[1]
            self.assertRegex(str(many), "more than 1000")

    def test_a_silent_stream_is_lost(self) -> None:
        def answer(stream: socket.socket, _: bytes) -> None:
            stream.sendall(EVENTS)
            stream.recv(1)

        self.assertIsInstance(self.read(answer)[1], TimedOut)


class SettingsTest(unittest.TestCase):
    """Where a farm is."""

    def test_the_environment_says_what_arguments_do_not(self) -> None:
        names = {"TESSERA_URL": "http://localhost:1", "TESSERA_API_TOKEN": "t1"}
        with mock.patch.dict(os.environ, names):
            settings = Settings()
            self.assertEqual((settings.host, settings.port, settings.token), ("localhost", 1, "t1"))
            self.assertEqual(Settings("http://[::1]:2", "t2").netloc, "[::1]:2")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("t3\n")
            file.flush()
            with mock.patch.dict(os.environ, {"TESSERA_API_TOKEN_FILE": file.name}, clear=True):
                self.assertEqual(Settings().token, "t3")
                self.assertEqual(Settings().netloc, "127.0.0.1:7421")

    def test_what_cannot_be_an_address_is_refused(self) -> None:
        for url in ("ftp://a", "farm", "http://", "https://a/path", "https://u:p@a", "https://a?b"):
            self.assertRaises(ValueError, Settings, url, "t")
        for token in ("a b", "a\r\nX: y", "\u00e9"):
            self.assertRaises(ValueError, Settings, None, token)

    def test_a_token_crosses_no_network_in_clear(self) -> None:
        self.assertRaisesRegex(ValueError, "in clear", Settings, "http://farm.example", "t")
        self.assertTrue(Settings("http://farm.example", "t", allow_plain=True))
        self.assertTrue(Settings("https://farm.example", "t").context)
