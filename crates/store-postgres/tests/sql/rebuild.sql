-- Recounts all requests.
CALL leasehold.leasehold_rebuild()
