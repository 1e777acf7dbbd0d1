"""Web servers that do what no server should, on loopback, and one that only counts who comes."""

import base64
import gzip
import json
import socket
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PIECE = b"x" * 65_536
# 1 GiB of zeros.
BROTLI = base64.b64decode(
    "z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje//P//x8ACY"
    "A4LADd+3/+//8DIAEQhwWge//P//9/ACQA4rAAdO//+f//D4AEQBwWgO79P////wGQAIjDAtC9/+f//z8AEgBxWAC69//8//8HQAIgDgtA9/6f"
    "////AEgAxGEB6N7/8///HwAJgDgsAN37f/7//wMgARCHBaB7/8///38AJADisAB07//5//8PgARAHBaA7v0/////AZAAiMMC0L3/5///PwASAH"
    "FYALr3//z//wdAAiAOC0D3/p////8ASADEYQHo3v/z//8fAAmAOCwA3ft//v//AyABEIcFoHv/z///fwAkAOKwAHTv//n//w+ABEAcFoDu/T//"
    "//8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje//P//x8ACYA4LADd+3/+//8DIAEQhwWge//P//9/ACQA4r"
    "AAdO//+f//D4AEQBwWgO79P////wGQAIjDAtC9/+f//z8AEgBxWAC69//8//8HQAIgDgtA9/6f////AEgAxGEB6N7/8///HwAJgDgsAN37f/7/"
    "/wMgARCHBaB7/8///38AJADisAB07//5//8PgARAHBaA7v0/////AZAAiMMC0L3/5///PwASAHFYALr3//z//wdAAiAOC0D3/p////8ASADEYQ"
    "Ho3v/z//8fAAmAOCwA3ft//v//AyABEIcFoHv/z///fwAkAOKwAHTv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//"
    "B0ACIA4LQPf+n////wBIAMRhAeje//P//x8ACYA4LADd+3/+//8DIAEQhwWge//P//9/ACQA4rAAdO//+f//D4AEQBwWgO79P////wGQAIjDAt"
    "C9/+f//z8AEgBxWAC69//8//8HQAIgDgtA9/6f////AEgAxGEB6N7/8///HwAJgDgsAN37//z//wcgARCHBaB7/w8="
)


def deflated(pieces):
    """16 MiB of zeros again and again, as raw deflate: a block that ends in a full flush can be repeated as it is."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * pieces + b"\x03\x00"


DEFLATED = deflated(64)
# 1 GiB in 1 MiB; nobody should come to the checksum at its end.
GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + DEFLATED + bytes(8)
ZLIB = b"\x78\xda" + DEFLATED + bytes(4)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def _read_body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _whole(self, body, kind="text/plain", status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self):
        body = self._read_body()
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.seen.append(
            {
                "path": self.path,
                "method": self.command,
                "headers": dict(self.headers.items()),
                "body": body.decode(errors="replace"),
            }
        )
        page = getattr(self, "page_" + parts.path.strip("/").split("/")[0], None)
        try:
            if page:
                page(query)
            elif parts.path in self.server.pages:
                kind, text = self.server.pages[parts.path]
                self._whole(text.encode("utf-16le" if "utf-16le" in kind else "utf-8"), kind)
            else:
                self._whole(b"nothing here", status=404)
        except OSError:
            pass  # The other side has had enough.
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _handle

    # Pages that behave.

    def page_hello(self, _):
        self._whole(b"hello")

    def page_echo(self, _):
        self._whole(json.dumps(self.server.seen[-1]).encode(), "application/json")

    def page_html(self, _):
        self._whole(
            b"<html><head><title>T</title></head><body><h1>Head</h1><p>text <a"
            b" href='/x'>link</a></p><script>bad()</script></body></html>",
            "text/html",
        )

    # Pages that do not.

    def page_to(self, query):
        self._whole(b"", status=int(query.get("status", "302")), Location=query["url"])

    def page_loop(self, _):
        self._whole(b"", status=302, Location="/loop")

    def page_hops(self, query):
        left = int(query["left"])
        self._whole(b"arrived") if left == 0 else self._whole(b"", status=302, Location=f"/hops?left={left - 1}")

    def page_gzip(self, _):
        self._whole(GZIP, Content_Encoding="gzip")

    def page_twice(self, _):
        self._whole(gzip.compress(GZIP), Content_Encoding="gzip, gzip")

    def page_deflate(self, _):
        self._whole(ZLIB, Content_Encoding="deflate")

    def page_brotli(self, _):
        self._whole(BROTLI, Content_Encoding="br")

    def page_broken(self, _):
        self._whole(b"\x1f\x8b\x08\0garbage that is no gzip" * 100, Content_Encoding="gzip")

    def page_endless(self, _):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        # 2 GiB at the most.
        for _ in range(32_768):
            self.wfile.write(PIECE)

    def page_liar(self, _):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        self.wfile.write(b"that was all")
        self.wfile.flush()
        self.server.stop.wait(30)

    def page_drip(self, _):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        while not self.server.stop.wait(0.1):
            self.wfile.write(b"x")
            self.wfile.flush()

    def page_silent(self, _):
        self.server.stop.wait(60)

    def page_headers(self, _):
        self.send_response(200)
        for number in range(2_000):
            self.send_header(f"X-Many-{number}", "y" * 1_000)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def page_header(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
        # 256 MiB at the most.
        for _ in range(4_096):
            self.wfile.write(PIECE)

    def page_control(self, _):
        self._whole("\x1b[2Jcleared \u202e back \0 nul".encode(), X_Odd="a\x01b", Content_Type="text/plain\x1b[31m")

    def page_deep(self, _):
        self._whole(b"<div>" * 200_000 + b"deep" + b"</div>" * 200_000, "text/html")

    def page_wide(self, _):
        self._whole(b"<table>" + b"<tr><td>" * 100_000, "text/html")

    def page_attributes(self, _):
        self._whole(b"<p " + b" ".join(b"a%d='x'" % number for number in range(200_000)) + b">x</p>", "text/html")

    def page_json(self, _):
        self._whole(b"[" * 500_000 + b"]" * 500_000, "application/json")

    def page_charset(self, _):
        self._whole(b"+ADw-script+AD4- \xff\xfe", "text/html; charset=utf-7")

    def page_auth(self, query):
        self._whole(b"", status=int(query.get("status", "302")), Location=query["url"], Set_Cookie="a=b")

    def page_refresh(self, query):
        self._whole(
            f"<meta http-equiv=refresh content='0;url={query['url']}'><iframe src='{query['url']}'></iframe>".encode(),
            "text/html",
        )


class Web(ThreadingHTTPServer):
    """A server on a free port of loopback, or of another address."""

    daemon_threads = True
    address_family = socket.AF_INET

    def __init__(self, address="127.0.0.1"):
        super().__init__((address, 0), Handler)
        self.seen, self.stop = [], threading.Event()
        # Further pages of one case: their kind and text, by path.
        self.pages = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # Clients leave in the middle, as they should.

    @property
    def port(self):
        return self.server_address[1]

    @property
    def url(self):
        return f"http://{self.server_address[0]}:{self.port}"

    def close(self):
        self.stop.set()
        self.shutdown()
        self.server_close()
