-- From here on notifications arrive.
LISTEN leasehold
