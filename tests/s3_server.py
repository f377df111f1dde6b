"""A real S3 server on this machine, for histories in an object store."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from patience import wait_for

BUCKET = "histories"
_SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


#: One request after the other: with threads, two conditional puts of one name may both succeed.
_SERVE = """
import sys
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple
WSGIRequestHandler.log = lambda *given: None  # no one reads it
run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=False)
"""


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """A server with one bucket, in a process of its own; the environment that leads there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starting = [sys.executable, "-c", _SERVE, str(port)]
    server = subprocess.Popen(starting, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def has_bucket() -> bool:
        assert server.poll() is None, "the S3 server has ended"
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("PUT", f"/{BUCKET}", headers={"Authorization": _SIGNED})
            return connection.getresponse().status == 200
        except OSError:
            return False

    try:
        assert wait_for(has_bucket)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.kill()
        server.wait()
