-- From here on notifications about jobs arrive.
LISTEN leasehold_job
