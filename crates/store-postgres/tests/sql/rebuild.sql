-- Recounts all requests.
SELECT leasehold.leasehold_rebuild()
