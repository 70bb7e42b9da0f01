-- Recounts all requests.
SELECT leasehold_rebuild()
