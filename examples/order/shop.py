"""The shop of the order example: stock over HTTP on 127.0.0.1:8099, and workers for the queues `payments` and `warehouse`.

LEASEHOLD_KEY=... python3 examples/order/shop.py http://127.0.0.1:7777 [port]
"""
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib import request

BASE, PORT = sys.argv[1].rstrip("/"), int(sys.argv[2]) if len(sys.argv) > 2 else 8099
KEY, NAME = os.environ["LEASEHOLD_KEY"], f"shop-{os.getpid()}-{os.urandom(4).hex()}"


class Stock(BaseHTTPRequestHandler):
    """GET /stock/{item}: returns the price and the shelf of an item."""

    def do_GET(self):
        item = self.path.rsplit("/", 1)[-1]
        body = json.dumps({"item": item, "price": 5 * len(item), "shelf": item[:1]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def call(path, body):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with request.urlopen(request.Request(BASE + path, json.dumps(body).encode(), headers), timeout=60) as answer:
        return json.load(answer)


def work(job):
    """`input` holds the node's input. The returned value is the node's output, which later nodes can use."""
    data = job["payload"]["input"]
    print(f"{job['payload']['node_id']}: {json.dumps(data)}", flush=True)
    return {"done": job["kind"], **data}


def worker(queue):
    while True:
        for job in call(f"/v1/queues/{queue}/claim", {"worker": NAME, "max": 1, "lease_ms": 30_000, "wait_ms": 30_000})["jobs"]:
            end = {"id": job["id"], "token": job["token"], "outcome": "completed", "result": work(job)}
            call("/v1/jobs/finish", {"worker": NAME, "finishes": [end]})


for queue in ("payments", "warehouse"):
    threading.Thread(target=worker, args=(queue,), daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", PORT), Stock)
print(f"the shop listens on 127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
