-- Subscribes to notifications for the services.
LISTEN leasehold
