-- Ends the subscription.
DROP SUBSCRIPTION moving
