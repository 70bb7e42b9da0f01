"""A Leasehold worker in plain Python: LEASEHOLD_KEY=... python3 worker.py http://127.0.0.1:7777 emails"""
import json, os, signal, socket, sys, threading, time
from urllib import parse, request

BASE, QUEUE, KEY = sys.argv[1].rstrip("/"), parse.quote(sys.argv[2], safe=""), os.environ["LEASEHOLD_KEY"]
NAME = f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"  # unique for each worker
LEASE_MS, WORK_SECONDS = int(os.environ.get("LEASE_MS", "30000")), float(os.environ.get("WORK_SECONDS", "0"))
stopping, waiting, failures = threading.Event(), False, 0
held, lost = {}, set()  # claims (job, token) of this worker with the ends of their leases, and those whose lease is lost


def call(path, body):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    post = request.Request(BASE + path, json.dumps(body).encode(), headers)
    with request.urlopen(post, timeout=60) as answer:
        return json.load(answer)


def heartbeat():
    """Renews all leases in one call, every third of a lease. A claim that is missing in the answer is lost."""
    while True:
        time.sleep(LEASE_MS / 3000)
        claims, sent = list(held), time.monotonic()
        body = {"worker": NAME, "lease_ms": LEASE_MS, "claims": [{"id": job, "token": token} for job, token in claims]}
        try:
            answer = call("/v1/jobs/renew", body) if claims else {}
            renewed, busy = answer.get("held", []), answer.get("busy", [])
            held.update({claim: sent + LEASE_MS / 1000 for claim in claims if claim[0] in renewed and claim in held})
            lost.update(claim for claim in claims if claim[0] not in renewed + busy)
        except Exception as problem:  # the next heartbeat comes before the leases expire
            print("cannot renew:", problem, file=sys.stderr, flush=True)


def is_lost(job):
    """Whether the lease is lost, or has passed without a renewal: another worker may have the job."""
    claim = (job["id"], job["token"])
    return claim in lost or time.monotonic() >= held[claim]


def work(job):
    """Your work goes here. Long work should check from time to time whether its lease is lost, and stop then."""
    print(f"working on job {job['id']}: {job['kind']}, attempt {job['attempt']}", flush=True)
    end = time.monotonic() + WORK_SECONDS
    while time.monotonic() < end and not is_lost(job):
        time.sleep(0.005)
    return {"payload": job["payload"], "by": NAME}


def outcome(job):
    if stopping.is_set() or is_lost(job):
        return {"outcome": "given_back"}  # not started: does not count as an attempt
    try:
        return {"outcome": "completed", "result": work(job)}
    except Exception as problem:
        return {"outcome": "failed", "error": repr(problem)}  # retried according to the job's retry policy


def finish(ends):
    """Reports the results, with retries. The server answers lease_lost for a lost lease; that result does not count."""
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
        raise InterruptedError("stopping")  # the server detects the disconnect and leases no jobs


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=heartbeat, daemon=True).start()
while not stopping.wait(min(0.1 * 2**failures, 5) if failures else 0):
    jobs, claim = [], {"worker": NAME, "max": 10, "lease_ms": LEASE_MS, "wait_ms": 30_000}
    try:
        waiting, sent = True, time.monotonic()  # long poll: the server answers within 30 s, or as soon as there is a job
        answer = call(f"/v1/queues/{QUEUE}/claim", claim)
        jobs, waiting, failures = answer["jobs"], False, 0
    except Exception as problem:
        waiting, failures = False, failures + 1
        print("cannot claim:", problem, file=sys.stderr, flush=True)
    for job in jobs:  # the lease began before the answer was read: this process may have been suspended since
        held[(job["id"], job["token"])] = sent + (answer.get("waited_ms", 0) + job["lease_ms"]) / 1000
    ends = [{"id": job["id"], "token": job["token"], **outcome(job)} for job in jobs]
    finish([end for end in ends if (end["id"], end["token"]) not in lost])
    held, lost = {}, set()
