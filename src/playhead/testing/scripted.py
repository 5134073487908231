"""A model server on loopback that answers from a script: same script, same bytes.

    with ScriptedServer([ask(call("weather", city="Bern")), say("It is warm.")]) as server:
        client = OpenAI(base_url=server.url + "/v1", api_key="none")

Each request takes the next reply, whoever asks; a script that is at its end answers with
status 500 and says so. (docs/reference/testing.md)
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from playhead.core.model import JSON
from playhead.testing.dialects import Asked, Dialect, dialect_of
from playhead.testing.script import Reply

MAX_BODY = 64 * 1024 * 1024


class ScriptedServer:
    """Serves while it is open. Use it with ``with``.

    Args:
        script: the replies, in order.
        piece: characters in one piece of a streamed answer.
        pause: waits the seconds of a reply's ``delay``; tests may pass their own.
    """

    def __init__(
        self,
        script: Sequence[Reply],
        *,
        piece: int = 12,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.piece = max(1, piece)
        self.pause = pause
        self._script = list(script)
        self._requests: list[Mapping[str, JSON]] = []
        self._lock = threading.Lock()
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``, without a slash at its end; "" while it is closed."""
        return "" if self._http is None else f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[Mapping[str, JSON]]:
        """The bodies that arrived so far, in order."""
        with self._lock:
            return list(self._requests)

    @property
    def left(self) -> int:
        """Replies that nobody asked for yet."""
        with self._lock:
            return max(0, len(self._script) - len(self._requests))

    def take(self, body: Mapping[str, JSON]) -> tuple[int, Reply]:
        """The number of this request (from 1) and its reply."""
        with self._lock:
            self._requests.append(body)
            number = len(self._requests)
            if number <= len(self._script):
                return number, self._script[number - 1]
        return number, Reply(f"the script has {len(self._script)} replies", status=500)

    def open(self) -> ScriptedServer:
        """Listen on a free port of the loopback address. ``with`` does this."""
        if self._http is None:
            self._http = _Http(self)
            serve = self._http.serve_forever
            self._thread = threading.Thread(
                target=serve, args=(0.02,), name="scripted-server", daemon=True
            )
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening. Idempotent."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> ScriptedServer:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Http(ThreadingHTTPServer):
    """Knows its script. Connections are threads that end with the process."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: ScriptedServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who 127.0.0.1 is, as the base class does."""
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        return  # a test's output is its own

    def do_POST(self) -> None:
        try:
            self._post()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _post(self) -> None:
        body = self._body()
        dialect = dialect_of(self.path.split("?")[0])
        if dialect is None or body is None:
            self.close_connection = body is None
            what = "a JSON object is needed" if body is None else f"nothing is at {self.path}"
            self._send(400 if body is None else 404, {"error": {"message": what}})
            return
        number, reply = self.server.script.take(body)
        asked = Asked(number, str(body.get("model", "")), body, self.server.script.piece)
        if reply.status != 200:
            self._send(reply.status, dialect.error(reply.text))
        elif body.get("stream"):
            self._stream(dialect, asked, reply)
        else:
            self._send(200, dialect.whole(asked, reply))

    def _body(self) -> dict[str, JSON] | None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > MAX_BODY:
            return None
        try:
            body = json.loads(self.rfile.read(int(size)))
        except (ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) else None

    def _send(self, status: int, value: JSON) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _stream(self, dialect: Dialect, asked: Asked, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, (name, data) in enumerate(dialect.chunks(asked, reply)):
            if number == reply.cut:
                self.wfile.flush()
                self.close_connection = True
                return
            if reply.delay:
                self.server.script.pause(reply.delay)
            text = data if isinstance(data, str) else json.dumps(data)
            event = f"event: {name}\n" if name else ""
            self._chunk(f"{event}data: {text}\n\n".encode())
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        """One chunk of a chunked body, at once; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
