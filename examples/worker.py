"""A Leasehold worker in plain Python: LEASEHOLD_KEY=... python3 worker.py http://127.0.0.1:7777 emails"""
import json, os, signal, socket, sys, threading, time
from urllib import parse, request

BASE, QUEUE, KEY = sys.argv[1].rstrip("/"), parse.quote(sys.argv[2], safe=""), os.environ["LEASEHOLD_KEY"]
NAME = f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"  # unique for each worker
LEASE_MS, WORK_SECONDS = int(os.environ.get("LEASE_MS", "30000")), float(os.environ.get("WORK_SECONDS", "0"))
stopping, waiting, failures = threading.Event(), False, 0
held, lost = set(), set()  # claims (job, token) of this worker, and those whose lease is lost


def call(path, body):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    post = request.Request(BASE + path, json.dumps(body).encode(), headers)
    with request.urlopen(post, timeout=60) as answer:
        return json.load(answer)


def heartbeat():
    """Renews all leases in one call, every third of a lease. A claim that is missing in the answer is lost."""
    while True:
        time.sleep(LEASE_MS / 3000)
        claims = list(held)
        body = {"worker": NAME, "lease_ms": LEASE_MS, "claims": [{"id": job, "token": token} for job, token in claims]}
        try:
            still = call("/v1/jobs/renew", body)["held"] if claims else []
            lost.update(claim for claim in claims if claim[0] not in still)
        except Exception as problem:  # the next heartbeat comes before the leases expire
            print("cannot renew:", problem, file=sys.stderr, flush=True)


def work(job):
    """Your work goes here. Long work should check from time to time whether its lease is lost, and stop then."""
    print(f"working on job {job['id']}: {job['kind']}, attempt {job['attempt']}", flush=True)
    end = time.monotonic() + WORK_SECONDS
    while time.monotonic() < end and (job["id"], job["token"]) not in lost:
        time.sleep(0.005)
    return {"payload": job["payload"], "by": NAME}


def outcome(job):
    if stopping.is_set():
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
        waiting = True  # long poll: the server answers within 30 s, or as soon as there is a job
        jobs, waiting, failures = call(f"/v1/queues/{QUEUE}/claim", claim)["jobs"], False, 0
    except Exception as problem:
        waiting, failures = False, failures + 1
        print("cannot claim:", problem, file=sys.stderr, flush=True)
    held |= {(job["id"], job["token"]) for job in jobs}
    ends = [{"id": job["id"], "token": job["token"], **outcome(job)} for job in jobs]
    finish([end for end in ends if (end["id"], end["token"]) not in lost])
    held, lost = set(), set()
