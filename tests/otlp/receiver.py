"""What stands behind a collector: decodes OTLP over HTTP by OpenTelemetry's own schema, and writes
a line of JSON for each span and each line of a log.

    receiver.py PORT FILE
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def plain(value):
    """The value of an attribute."""
    return getattr(value, value.WhichOneof("value") or "string_value")


def attributes(of):
    return {pair.key: plain(pair.value) for pair in of}


def spans(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "kind": "span",
                    "service": service,
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "span_kind": span.kind,
                    "from": span.start_time_unix_nano,
                    "to": span.end_time_unix_nano,
                    "status": span.status.code,
                    "attributes": attributes(span.attributes),
                }


def lines(body):
    for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        service = attributes(resource.resource.attributes)
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield {
                    "kind": "line",
                    "service": service,
                    "trace": record.trace_id.hex(),
                    "id": record.span_id.hex(),
                    "severity": record.severity_number,
                    "text": plain(record.body),
                    "attributes": attributes(record.attributes),
                }


class Receiver(BaseHTTPRequestHandler):
    """Takes what a collector sends."""

    def do_POST(self):  # noqa: N802, the name that the server looks for
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        decode = {"/v1/traces": spans, "/v1/logs": lines}.get(self.path)
        if decode:
            text = "".join(json.dumps(one) + "\n" for one in decode(body))
            with open(sys.argv[2], "a", encoding="utf-8") as out:
                out.write(text)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Says nothing of each request."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
