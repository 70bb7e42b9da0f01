"""A Leasehold worker in plain Python: LEASEHOLD_KEY=... python3 worker.py http://127.0.0.1:7777 emails"""
import json, os, signal, socket, sys, threading, time
from urllib import parse, request

BASE, QUEUE, KEY = sys.argv[1].rstrip("/"), parse.quote(sys.argv[2], safe=""), os.environ["LEASEHOLD_KEY"]
NAME = f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"  # no other worker has it
LEASE_MS, WORK_SECONDS = int(os.environ.get("LEASE_MS", "30000")), float(os.environ.get("WORK_SECONDS", "0"))
stopping, waiting, failures = threading.Event(), False, 0
held, lost = set(), set()  # claims (job, token) that are ours, and those that may be another's by now


def call(path, body):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    asked = request.Request(BASE + path, json.dumps(body).encode(), headers)
    with request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def heartbeat():
    """Renews all leases in one call at a third of their length. A claim that is not in the answer is lost."""
    while True:
        time.sleep(LEASE_MS / 3000)
        claims = list(held)
        body = {"worker": NAME, "lease_ms": LEASE_MS, "claims": [{"id": job, "token": token} for job, token in claims]}
        try:
            still = call("/v1/jobs/renew", body)["held"] if claims else []
            lost.update(claim for claim in claims if claim[0] not in still)
        except Exception as problem:  # the next beat comes before the leases end
            print("cannot renew:", problem, file=sys.stderr, flush=True)


def work(job):
    """Your work goes here. What takes long looks now and then whether its lease is lost, and stops if it is."""
    print(f"working on job {job['id']}: {job['kind']}, attempt {job['attempt']}", flush=True)
    end = time.monotonic() + WORK_SECONDS
    while time.monotonic() < end and (job["id"], job["token"]) not in lost:
        time.sleep(0.005)
    return {"payload": job["payload"], "by": NAME}


def outcome(job):
    if stopping.is_set():
        return {"outcome": "given_back"}  # not started, so this was no attempt
    try:
        return {"outcome": "completed", "result": work(job)}
    except Exception as problem:
        return {"outcome": "failed", "error": repr(problem)}  # tried again as the job's policy says


def finish(ends):
    """Tells the server, and insists. What was lost after all is answered as lease_lost and does not count."""
    for tries in range(10):
        if not ends:
            return
        try:
            answers = call("/v1/jobs/finish", {"worker": NAME, "finishes": ends})["finished"]
            ends = [end for end, answer in zip(ends, answers) if answer["state"] == "not_written"]
        except Exception as problem:
            print("cannot finish:", problem, file=sys.stderr, flush=True)
        time.sleep(min(0.1 * 2**tries, 5) if ends else 0)


def stop(*_):
    stopping.set()
    if waiting:
        raise InterruptedError("stopping")  # the server sees us go and gives us nothing


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=heartbeat, daemon=True).start()
while not stopping.wait(min(0.1 * 2**failures, 5) if failures else 0):
    jobs, asked = [], {"worker": NAME, "max": 10, "lease_ms": LEASE_MS, "wait_ms": 30_000}
    try:
        waiting = True  # at the server, half a minute at most, until there is a job
        jobs, waiting, failures = call(f"/v1/queues/{QUEUE}/claim", asked)["jobs"], False, 0
    except Exception as problem:
        waiting, failures = False, failures + 1
        print("cannot claim:", problem, file=sys.stderr, flush=True)
    held |= {(job["id"], job["token"]) for job in jobs}
    ends = [{"id": job["id"], "token": job["token"], **outcome(job)} for job in jobs]
    finish([end for end in ends if (end["id"], end["token"]) not in lost])
    held, lost = set(), set()
