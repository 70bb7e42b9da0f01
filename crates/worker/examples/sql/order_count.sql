-- Counts the orders.
SELECT count(*) FROM shop_order
