"""Requests to where they must not go, and servers that answer with poison."""

import json
from urllib.parse import quote

from abuse_case import AbuseCase
from web import Web

CREDENTIAL = "credential-that-nobody-may-see"


def addresses(port):
    """Ways to write this machine, or one nearby."""
    return [
        f"http://127.0.0.1:{port}/hello",
        f"http://localhost:{port}/hello",
        f"http://LOCALHOST:{port}/hello",
        f"http://localhost.:{port}/hello",
        f"http://foo.localhost:{port}/hello",
        f"http://127.1:{port}/hello",
        f"http://127.0.1:{port}/hello",
        f"http://127.255.255.254:{port}/hello",
        f"http://2130706433:{port}/hello",
        f"http://0x7f000001:{port}/hello",
        f"http://0x7f.0.0.1:{port}/hello",
        f"http://0177.0.0.1:{port}/hello",
        f"http://017700000001:{port}/hello",
        f"http://127.0.0.1.:{port}/hello",
        f"http://0:{port}/hello",
        f"http://0.0.0.0:{port}/hello",
        f"http://[::1]:{port}/hello",
        f"http://[::]:{port}/hello",
        f"http://[::ffff:127.0.0.1]:{port}/hello",
        f"http://[::ffff:7f00:1]:{port}/hello",
        f"http://[::127.0.0.1]:{port}/hello",
        f"http://[64:ff9b::7f00:1]:{port}/hello",
        f"http://[2002:7f00:1::]:{port}/hello",
        f"http://[fe80::1%25lo]:{port}/hello",
        f"http://[fd00::1]:{port}/hello",
        f"http://１２７.０.０.１:{port}/hello",
        f"http://①②⑦.⓪.⓪.①:{port}/hello",
        f"http://127。0。0。1:{port}/hello",
        f"http://user@127.0.0.1:{port}/hello",
        f"http://example.org@127.0.0.1:{port}/hello",
        f"http://127.0.0.1:{port}\\@example.org/hello",
        f"http:\\\\127.0.0.1:{port}/hello",
        f"http:127.0.0.1:{port}/hello",
        f"http:///127.0.0.1:{port}/hello",
        f"HTTP://127.0.0.1:{port}/hello",
        f" http://127.0.0.1:{port}/hello",
        f"ht\ntp://127.0.0.1:{port}/hello",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.64.0.1/",
        "http://192.0.0.1/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://168.63.129.16/",
        "http://[fd00:ec2::254]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[2001::1]/",
    ]


OTHER_SCHEMES = (
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:70/_x",
    "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/",
    "data:text/plain,hello",
    "javascript:1",
    "ws://127.0.0.1/",
    "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "jar:file:///x!/",
    "ldap://127.0.0.1/",
    "about:blank",
    "",
    "   ",
    "//127.0.0.1/",
    "/etc/passwd",
    "http://",
    "http://:80/",
    "x" * 100_000,
)


class WebCase(AbuseCase):
    """One server that the operator allows, and one that nobody may reach."""

    @classmethod
    def prepare(cls):
        cls.allowed, cls.other, cls.forbidden = Web(), Web(), Web()
        for one in (cls.allowed, cls.other, cls.forbidden):
            cls.addClassCleanup(one.close)
        path = cls.place.folder / "credential"
        path.write_text(CREDENTIAL)
        path.chmod(0o600)

    @classmethod
    def whole_config(cls):
        network = {
            # Of the third one only a part.
            "private": [cls.allowed.url + "/", cls.other.url + "/", cls.forbidden.url + "/open/"],
            "max_body": "1MiB",
            "credentials": {
                "api": {"file": "credential", "urls": [cls.allowed.url + "/echo", cls.allowed.url + "/auth"]}
            },
        }
        return {**super().whole_config(), "network": network}

    def setUp(self):
        super().setUp()
        for one in (self.allowed, self.other, self.forbidden):
            one.seen.clear()

    def clean(self, answer):
        self.assertNotIn(CREDENTIAL, answer.everything, "the answer holds a credential")
        return super().clean(answer)

    def request(self, url, **arguments):
        return self.call("http_request", {"url": url} | arguments, timeout=10)

    def page(self, name):
        return f"{self.allowed.url}/{name}"


class Addresses(WebCase):
    seconds = 90

    def test_no_way_to_write_this_machine_gets_there(self):
        urls = addresses(self.forbidden.port)
        for tool, caller in (("http_request", self.http), ("fetch_page", self.a2e)):
            answers = self.many(((tool, {"url": url}) for url in urls), timeout=5, caller=caller)
            for url, answer in zip(urls, answers, strict=True):
                with self.subTest(url=url, tool=tool):
                    self.assertFalse(answer.ok, answer)
                    self.assertNotEqual(answer.outcome, "timed_out", "it was tried")
        self.assertEqual(self.forbidden.seen, [])

    def test_the_host_itself_cannot_be_reached(self):
        for path in ("health", "tools", "session"):
            self.assertFalse(self.request(f"http://127.0.0.1:{self.host.port}/{path}").ok)

    def test_no_other_schemes(self):
        for tool in ("http_request", "fetch_page"):
            for url, answer in zip(
                OTHER_SCHEMES, self.many((tool, {"url": url}) for url in OTHER_SCHEMES), strict=True
            ):
                with self.subTest(url=url[:60], tool=tool):
                    self.assertFalse(answer.ok, answer)

    def test_what_begins_like_an_allowed_one_is_not(self):
        port = self.allowed.port
        for url in (
            f"http://127.0.0.1:{port}@127.0.0.1:{self.forbidden.port}/hello",
            f"http://127.0.0.1:{self.forbidden.port}/hello?{self.allowed.url}/",
            f"http://127.0.0.1:{self.forbidden.port}/{self.allowed.url}/hello",
            f"http://127.0.0.1:{str(port)}0/hello",
        ):
            self.assertFalse(self.request(url).ok, url)
        self.assertEqual(self.forbidden.seen, [])

    def test_a_part_of_a_server_is_only_that_part(self):
        ways = (
            "/open/../hello",
            "/open/%2e%2e/hello",
            "/open/.%2E/hello",
            "/open/x/../../hello",
            "/open\\..\\hello",
            "//open/../hello",
            "/openhello",
            "/OPEN/hello",
            "/./open/../hello",
            "/hello?/open/",
            "/hello#/open/",
            "/hello;/open/",
            "/%6fpen/../hello",
            "/open/%2e%2e%2fhello",
        )
        for way in ways:
            self.request(self.forbidden.url + way)
            self.request(self.page(f"to?url={quote(self.forbidden.url + way, safe='')}"))
        outside = [seen["path"] for seen in self.forbidden.seen if not seen["path"].startswith("/open/")]
        self.assertEqual(outside, [])

    def test_redirects_to_where_nothing_may_go(self):
        targets = (
            addresses(self.forbidden.port) + list(OTHER_SCHEMES[:12]) + [f"//127.0.0.1:{self.forbidden.port}/hello"]
        )
        calls = [
            ("http_request", {"url": self.page(f"to?status={status}&url={quote(target, safe='')}")})
            for number, target in enumerate(targets)
            for status in ((301, 302, 303, 307, 308)[number % 5],)
            if "\n" not in target
        ]
        calls += [
            (
                "http_request",
                {
                    "url": self.page(f"to?status={status}&url={quote(self.forbidden.url + '/hello', safe='')}"),
                    "method": method,
                },
            )
            for status in (301, 302, 303, 307, 308)
            for method in ("GET", "POST")
        ]
        for call, answer in zip(calls, self.many(calls, timeout=5), strict=True):
            with self.subTest(call=call):
                # A redirect that leads nowhere may be shown as what it is, and one that turns out to be relative
                # followed on the same server.
                came_to = (answer.structured or {}).get("url", "") if answer.ok else self.allowed.url
                self.assertTrue(came_to.startswith(self.allowed.url + "/") or not answer.ok, answer)
        self.assertEqual(self.forbidden.seen, [])

    def test_loops_and_long_ways_end(self):
        for name in ("loop", "hops?left=30"):
            answer = self.request(self.page(name))
            self.assertFalse(answer.ok and "arrived" in answer.text, answer)
        self.assertLess(len(self.allowed.seen), 40)

    def test_nothing_a_page_names_is_loaded(self):
        self.call("fetch_page", {"url": self.page(f"refresh?url={quote(self.forbidden.url + '/hello')}")})
        self.assertEqual(self.forbidden.seen, [])

    def test_twin_the_allowed_server(self):
        for caller in (self.http, self.a2e):
            self.assertIn("hello", self.succeed("http_request", {"url": self.page("hello")}, caller=caller).text)
            self.assertIn(
                "arrived", self.succeed("http_request", {"url": self.page("hops?left=2")}, caller=caller).text
            )
        answer = self.succeed("http_request", {"url": self.page("echo"), "method": "POST", "json": {"a": [1, "ü"]}})
        self.assertIn("ü", json.loads(self.allowed.seen[-1]["body"])["a"])
        self.assertTrue(answer.ok)
        text = self.succeed("fetch_page", {"url": self.page("html")}).text
        self.assertIn("Head", text)
        self.assertNotIn("bad()", text)


class Poison(WebCase):
    seconds = 90
    BOMBS = (
        "gzip",
        "twice",
        "deflate",
        "brotli",
        "broken",
        "endless",
        "liar",
        "headers",
        "header",
        "control",
        "deep",
        "wide",
        "attributes",
        "json",
        "charset",
    )

    def test_bombs_are_cut(self):
        before = self.host.resident_bytes()
        for tool, caller in (("http_request", self.http), ("fetch_page", self.a2e)):
            answers = self.many(
                ((tool, {"url": self.page(name)}) for name in self.BOMBS), timeout=5, caller=caller, at_once=5
            )
            for name, answer in zip(self.BOMBS, answers, strict=True):
                with self.subTest(page=name, tool=tool):
                    self.assertIn(answer.outcome, ("succeeded", "partial", "failed", "timed_out"), answer)
                    self.assertLess(len(answer.everything), 8 << 20)
                    self.assertNotIn("\x1b", answer.text)
        self.assertLess(self.host.resident_bytes() - before, 300 << 20)

    def test_slow_ones_end_at_the_deadline(self):
        running = [
            self.http.begin("http_request", {"url": self.page(name)}, 3)
            for name in ("drip", "silent", "drip", "silent")
        ]
        for one in running:
            self.assertFalse(self.clean(one.answer(30)).ok)

    def test_saving_a_bomb_is_bounded_too(self):
        for name in ("gzip", "endless"):
            self.call("http_request", {"url": self.page(name), "save_to": f"saved-{name}"}, timeout=10)
            saved = self.workspace / f"saved-{name}"
            self.assertLess(saved.stat().st_size if saved.exists() else 0, 200 << 20)
            saved.unlink(missing_ok=True)

    def test_saving_goes_nowhere_but_the_workspace(self):
        (self.workspace / "link-out").symlink_to(self.loot.folder)
        self.addCleanup((self.workspace / "link-out").unlink)
        for path in (
            "../outside/new.txt",
            str(self.loot.file),
            "link-out/new.txt",
            ".git/hooks/pre-commit",
            "/etc/abuse",
            "a\0b",
        ):
            with self.subTest(path=path):
                self.refuse("http_request", {"url": self.page("hello"), "save_to": path})
        self.assertFalse((self.workspace / ".git/hooks/pre-commit").exists())

    def test_twin_saving(self):
        self.succeed("http_request", {"url": self.page("hello"), "save_to": "saved.txt"})
        self.assertEqual((self.workspace / "saved.txt").read_text(), "hello")


class Headers(WebCase):
    def test_forbidden_ones_are_refused(self):
        for name in (
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "Proxy-Authorization",
            "Proxy-Connection",
            "host",
            "TE",
            "Keep-Alive",
            "Trailer",
        ):
            with self.subTest(name=name):
                answer = self.request(self.page("echo"), headers={name: "evil.example"})
                self.assertFalse(answer.ok and "evil.example" in str(self.allowed.seen), answer)

    def test_no_header_makes_another(self):
        for name, value in (
            ("X-A", "a\r\nX-Injected: 1"),
            ("X-A", "a\nX-Injected: 1"),
            ("X-A\r\nX-Injected", "1"),
            ("X-A: 1\r\nX-Injected", "1"),
            ("X-A", "a\0b"),
            ("", "x"),
            ("X A", "x"),
            ("X-Big", "y" * 500_000),
        ):
            self.refuse("http_request", {"url": self.page("echo"), "headers": {name: value}})
        for url in (
            self.page("echo?a=b HTTP/1.1\r\nX-Injected: 1\r\n"),
            self.page("echo%0d%0aX-Injected:1"),
            self.page("echo\r\nX-Injected: 1"),
        ):
            self.request(url)
        self.refuse("http_request", {"url": self.page("echo"), "method": "GET / HTTP/1.1\r\nX-Injected: 1\r\n\r\nGET"})
        for seen in self.allowed.seen:
            self.assertNotIn("X-Injected", seen["headers"])

    def test_credentials_stay_where_they_belong(self):
        other = quote(self.page("echo"), safe="")
        # Not for this address.
        self.refuse("http_request", {"url": self.page("hello"), "credential": "api"})
        self.refuse("http_request", {"url": self.page(f"to?url={other}"), "credential": "api"})
        for name in ("nope", "", "../credential", "HOST_PASSWORD", "env:HOST_PASSWORD"):
            self.refuse("http_request", {"url": self.page("echo"), "credential": name})
        self.assertNotIn(CREDENTIAL, str([seen for seen in self.allowed.seen if not seen["path"].startswith("/echo")]))

    def test_what_is_secret_is_dropped_on_the_way_to_another_server(self):
        """Another port is another server, also where it may be reached."""
        own = {"Authorization": "Bearer own-secret", "Cookie": "own-secret=1", "Proxy-Authorization": "own-secret"}
        for status in (301, 302, 303, 307, 308):
            for target in (
                self.other.url + "/echo",
                f"//127.0.0.1:{self.other.port}/echo",
                self.other.url + f"/to?url={quote(self.page('hello'), safe='')}",
            ):
                url = self.page(f"auth?status={status}&url={quote(target, safe='')}")
                self.request(url, credential="api")
                self.request(url, headers={"Authorization": own["Authorization"], "Cookie": own["Cookie"]})
        self.assertTrue(self.other.seen, "the redirects were not followed")
        told = str(self.other.seen) + str([seen for seen in self.allowed.seen if seen["path"].startswith("/hello")])
        self.assertNotIn(CREDENTIAL, told)
        self.assertNotIn("own-secret", told)

    def test_proxies_of_the_environment_are_not_used(self):
        self.assertIn("hello", self.succeed("http_request", {"url": self.page("hello")}).text)

    def test_giant_requests(self):
        for arguments in (
            {"body": "x" * (3 << 20)},
            {"headers": {f"X-{number}": "y" for number in range(20_000)}},
            {"query": {f"q{number}": "y" * 50 for number in range(20_000)}},
            {"json": [[]] * 100_000},
        ):
            self.call("http_request", {"url": self.page("echo"), "method": "POST"} | arguments)

    def test_twin_a_credential_by_name_and_own_headers(self):
        self.succeed("http_request", {"url": self.page("echo"), "credential": "api", "headers": {"X-Mine": "yes"}})
        seen = self.allowed.seen[-1]["headers"]
        self.assertEqual(seen.get("Authorization") or seen.get("authorization"), f"Bearer {CREDENTIAL}")
        self.assertEqual({name.lower(): value for name, value in seen.items()}["x-mine"], "yes")
