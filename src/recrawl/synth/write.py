"""The made-up web as files that crawlers and archives write: JSON lines and WARC."""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from dataclasses import fields
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

import orjson

from recrawl.core.files import writing
from recrawl.synth.records import html_pages, visits
from recrawl.synth.settings import SynthSettings
from recrawl.web.visit import Visit

_REVISIT_PROFILE = "http://netpreserve.org/warc/1.0/revisit/server-not-modified"
_FIELDS = {"Content-Type": "application/warc-fields"}


def write_jsonl(settings: SynthSettings, stream: BinaryIO) -> int:
    """Write the visits as JSON lines and return how many; fields without a value are left out.

    >>> import io
    >>> write_jsonl(SynthSettings(pages=2, rounds=3), io.BytesIO())
    6
    """
    n_visits = 0
    for visit in visits(settings):
        record = {field.name: getattr(visit, field.name) for field in fields(visit)}
        known = {name: value for name, value in record.items() if value is not None and value is not False}
        stream.write(orjson.dumps(known) + b"\n")
        n_visits += 1
    return n_visits


def write_warc(settings: SynthSettings, path: str | Path) -> int:
    """Write the visits as a WARC file, one gzip member per record if the name ends in ``.gz``, and return how many.

    A visit without a response (status 0) leaves no record in a WARC, as with crawlers; a 304 is a revisit record.
    """
    path = Path(path)
    n_records = 0
    with writing(path) as file:
        _put(file, path, _record("warcinfo", settings.start, b"software: recrawl synth\r\n", _FIELDS))
        for visit, body in html_pages(settings):
            if visit.status:
                _put(file, path, warc_record(visit, body))
                n_records += 1
    return n_records


def _put(file: BinaryIO, path: Path, record: bytes) -> None:
    file.write(gzip.compress(record, compresslevel=6, mtime=0) if path.suffix == ".gz" else record)


def warc_record(visit: Visit, body: bytes) -> bytes:
    """One visit as a record: a response, or for a 304 a revisit."""
    headers = {"WARC-Target-URI": visit.url, "Content-Type": "application/http; msgtype=response"}
    if visit.status == HTTPStatus.NOT_MODIFIED:
        headers["WARC-Profile"] = _REVISIT_PROFILE
        return _record("revisit", visit.at, _http(visit, b""), headers)
    headers["WARC-Payload-Digest"] = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
    return _record("response", visit.at, _http(visit, body), headers)


def _http(visit: Visit, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {visit.status} {HTTPStatus(visit.status).phrase}"]
    sent = {"Content-Type": visit.content_type, "ETag": visit.etag, "Last-Modified": visit.last_modified}
    lines += [f"{name}: {value}" for name, value in sent.items() if value]
    if visit.status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _record(kind: str, at: datetime, block: bytes, headers: dict[str, str]) -> bytes:
    # From the content, so that equal settings write equal files.
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {at.isoformat()} {headers.get('WARC-Target-URI', '')}")
    first = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:{name}>", "WARC-Date": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    lines = [f"{key}: {value}" for key, value in (first | headers | {"Content-Length": str(len(block))}).items()]
    return "\r\n".join(["WARC/1.0", *lines, "", ""]).encode() + block + b"\r\n\r\n"
